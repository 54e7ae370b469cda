"""Imports user code from a directory without affecting the rest of the process."""

import contextlib
import importlib
import os
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from determined import _arguments

_one_at_a_time = threading.Lock()
_OWN = {"__main__", "determined", "det_contracts"}
_INSTALLED = {"site-packages", "dist-packages"}


def _locations(module: ModuleType) -> list[str]:
    """Real paths of a module's file, or of its directories if it is a package."""
    # Accessing a namespace package's __path__ can raise while its parent is half imported.
    with contextlib.suppress(Exception):
        if hasattr(module, "__path__"):
            return [os.path.realpath(p) for p in module.__path__]
        if getattr(module, "__file__", None):
            return [os.path.realpath(str(module.__file__))]
    return []


def _is_below(root: str, path: str) -> bool:
    relative = os.path.relpath(path, root)
    return relative.split(os.sep)[0] != os.pardir and not _INSTALLED & set(relative.split(os.sep))


def _tops_directly_in(directory: str) -> set[str]:
    """Names of loaded top-level modules located directly in `directory`."""
    return {
        name
        for name, module in list(sys.modules.items())
        if "." not in name
        and name not in _OWN
        and any(os.path.dirname(where) == directory for where in _locations(module))
    }


def _with_submodules(tops: set[str]) -> dict[str, ModuleType]:
    return {name: module for name, module in sys.modules.items() if name.split(".")[0] in tops}


def _drop(tops: set[str]) -> dict[str, ModuleType]:
    dropped = _with_submodules(tops)
    for name in dropped:
        del sys.modules[name]
    return dropped


def _set_aside() -> dict[str, ModuleType]:
    here = os.path.realpath(os.getcwd())
    searched = {os.path.realpath(p) for p in sys.path}
    return _drop(_tops_directly_in(here)) if here in searched else {}


def _imported_since(before: set[str], root: str) -> set[str]:
    return {
        name
        for name, module in list(sys.modules.items())
        if name not in before and any(_is_below(root, where) for where in _locations(module))
    }


def _forget(before: set[str], root: str) -> None:
    """Remove modules that came from `root`. Removing a package removes all of its submodules too."""
    modules = _imported_since(before, root)
    for name in list(sys.modules):
        parents = name.split(".")
        if any(".".join(parents[:n]) in modules for n in range(1, len(parents) + 1)):
            del sys.modules[name]


def _restore_finders(path: list[str], finders: list[Any], root: str) -> None:
    sys.path[:] = path
    sys.meta_path[:] = finders
    for cached_path in [p for p in sys.path_importer_cache if _is_below(root, os.path.realpath(p))]:
        del sys.path_importer_cache[cached_path]
    importlib.invalidate_caches()


@contextlib.contextmanager
def import_from_path(path: "str | os.PathLike[str]") -> Iterator[None]:
    """Make imports inside the `with` block search `path` first (core API spec, section 13).

    On exit, sys.path is restored and modules from `path` are removed from sys.modules, so several directories
    can hold modules of the same name. Objects bound inside the block stay usable. No `__pycache__` is written
    under `path`. Nested or concurrent use raises RuntimeError.

    Args:
        path: The directory, such as the `code` folder of a checkpoint.

    Returns:
        A context manager.

    Raises:
        TypeError: If it is no path.
        RuntimeError: If another one is active, in this or another thread.

    Example:
        ```python
        with det.import_from_path(path + "/code"):
            import model_def
        trial_class = model_def.MyTrial
        ```
    """
    _arguments.path("path", path)
    if not _one_at_a_time.acquire(blocking=False):
        raise RuntimeError("import_from_path() does not support nesting or use from several threads at once")
    root = os.path.realpath(path)
    saved_path, saved_finders, saved_flag = list(sys.path), list(sys.meta_path), sys.dont_write_bytecode
    aside: dict[str, ModuleType] = {}
    before = set(sys.modules)
    try:
        aside = _set_aside()
        before = set(sys.modules)
        # The directory may be a checkpoint, to which nothing must be added.
        sys.dont_write_bytecode = True
        # Without the empty entry, the working directory, which may have files of the same names.
        sys.path[:] = [os.fspath(path), *(p for p in sys.path if p != "")]
        importlib.invalidate_caches()
        yield
    finally:
        sys.dont_write_bytecode = saved_flag
        _forget(before, root)
        _drop({name.split(".")[0] for name in aside})
        sys.modules.update(aside)
        _restore_finders(saved_path, saved_finders, root)
        _one_at_a_time.release()
