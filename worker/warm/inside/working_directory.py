"""Finds modules that store the working directory during their import: it differs in each run."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import PurePath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

TRANSIENT_READERS = {"inspect", "tempfile", "multiprocessing.process"}
"""They read it only in passing; `script_process` handles the last one."""


@contextlib.contextmanager
def record_cwd_readers() -> Iterator[set[str]]:
    """Record which modules read it."""
    cwd_readers: set[str] = set()
    real = os.getcwd

    def getcwd() -> str:
        names = list(_names(sys._getframe(1)))
        if not TRANSIENT_READERS & set(names):
            cwd_readers.add(
                next((name for name in names if name.partition(".")[0] not in _LIBRARY), names[0])
            )
        return real()

    os.getcwd = getcwd
    try:
        yield cwd_readers
    finally:
        os.getcwd = real


_LIBRARY = set(sys.stdlib_module_names)


def _names(frame: Any) -> Iterator[str]:
    """The modules on the stack, innermost first, up to the import in progress."""
    while frame is not None and "importlib" not in frame.f_code.co_filename:
        yield str(frame.f_globals.get("__name__", ""))
        frame = frame.f_back


class StoredPaths:
    """Where a module stores the working directory that it saw."""

    def __init__(self, module: str) -> None:
        self._here = os.getcwd()
        self._stored_paths = list(_find_stored_paths(sys.modules.get(module), self._here))

    def __bool__(self) -> bool:
        return bool(self._stored_paths)

    def relocate(self, cwd: str) -> None:
        """Change all of them as if the module had been imported in `cwd`."""
        for value, replace in self._stored_paths:
            replace(type(value)(cwd + str(value)[len(self._here) :]))


def _find_stored_paths(module: object, here: str) -> Iterator[tuple[Any, Callable[[Any], None]]]:
    """Each value that begins with a folder, and a function that replaces it."""
    if module is None:
        return
    holders = [
        module,
        *(v for v in vars(module).values() if isinstance(v, type) and _is_defined_in(v, module)),
    ]
    # Settings modules of torch keep their values here.
    settings = getattr(module, "_config", None)
    holders += settings.values() if isinstance(settings, dict) else []
    for holder in holders:
        for name, value in list(getattr(holder, "__dict__", {}).items()):
            if isinstance(value, str | PurePath) and str(value).startswith(here):
                yield value, lambda fresh, holder=holder, name=name: setattr(holder, name, fresh)  # type: ignore[misc]


def _is_defined_in(kind: type, module: object) -> bool:
    return kind.__module__ == getattr(module, "__name__", None)
