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

FORGETFUL = {"inspect", "tempfile", "multiprocessing.process"}
"""They read it only in passing; `becoming` handles the last one."""


@contextlib.contextmanager
def noted() -> Iterator[set[str]]:
    """Record which modules read it."""
    asking: set[str] = set()
    real = os.getcwd

    def getcwd() -> str:
        names = list(_names(sys._getframe(1)))
        if not FORGETFUL & set(names):
            asking.add(next((name for name in names if name.partition(".")[0] not in _LIBRARY), names[0]))
        return real()

    os.getcwd = getcwd
    try:
        yield asking
    finally:
        os.getcwd = real


_LIBRARY = set(sys.stdlib_module_names)


def _names(frame: Any) -> Iterator[str]:
    """The modules on the stack, innermost first, up to the import in progress."""
    while frame is not None and "importlib" not in frame.f_code.co_filename:
        yield str(frame.f_globals.get("__name__", ""))
        frame = frame.f_back


class Places:
    """Where a module stores the working directory that it saw."""

    def __init__(self, module: str) -> None:
        self._here = os.getcwd()
        self._found = list(_places(sys.modules.get(module), self._here))

    def __bool__(self) -> bool:
        return bool(self._found)

    def move(self, cwd: str) -> None:
        """Change all of them as if the module had been imported in `cwd`."""
        for value, put in self._found:
            put(type(value)(cwd + str(value)[len(self._here) :]))


def _places(module: object, here: str) -> Iterator[tuple[Any, Callable[[Any], None]]]:
    """Each value that begins with a folder, and a function that replaces it."""
    if module is None:
        return
    holders = [module, *(v for v in vars(module).values() if isinstance(v, type) and _of(v, module))]
    # Settings modules of torch keep their values here.
    settings = getattr(module, "_config", None)
    holders += settings.values() if isinstance(settings, dict) else []
    for holder in holders:
        for name, value in list(getattr(holder, "__dict__", {}).items()):
            if isinstance(value, str | PurePath) and str(value).startswith(here):
                yield value, lambda fresh, holder=holder, name=name: setattr(holder, name, fresh)  # type: ignore[misc]


def _of(kind: type, module: object) -> bool:
    return kind.__module__ == getattr(module, "__name__", None)
