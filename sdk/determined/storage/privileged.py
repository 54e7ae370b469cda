"""Storage access for the platform's own tasks.

They have more rights than the author of a storage configuration.

A directory is used only below the storage roots announced by the worker. No symbolic link on the path of a
deletion is followed, and none out of what is copied, not even one created concurrently. Linux only, like the
tasks.
"""

import contextlib
import os
import pathlib
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from det_contracts.roots import OutsideRoots, Roots, contains_path
from determined.storage.base import StorageManager
from determined.storage.build import build
from determined.storage.copying import Opener
from determined.storage.directory import SharedFSStorageManager
from determined.storage.listing import Resources, inside


def fenced(config: Mapping[str, Any], roots: Roots) -> StorageManager:
    """Like `build`, but raises `OutsideRoots`, a ValueError, for a directory outside the roots."""
    manager = build(config)
    if not isinstance(manager, SharedFSStorageManager):
        return manager
    return FencedDirectory(pathlib.Path(roots.check(os.path.realpath(manager.base_path))), roots)


class FencedDirectory(SharedFSStorageManager):
    """Refuses to list, download or delete anything outside the roots."""

    def __init__(self, base_path: pathlib.Path, roots: Roots) -> None:
        """`base_path` must already be resolved."""
        super().__init__(base_path)
        self._roots = roots

    def delete(self, tgt: str, globs: Iterable[str]) -> Resources:
        path = self._roots.check_tree(str(self.base_path / inside(tgt)))
        folder, name = os.path.split(path)
        try:
            with _opened(folder) as held:
                return SharedFSStorageManager(held).delete(name, globs)
        except FileNotFoundError:
            return {}

    def list_resources(self, src: str) -> Resources:
        """Return names and sizes, omitting entries that a link leads to elsewhere."""
        folder = self._roots.check_tree(os.path.realpath(self.base_path / inside(src)))
        resources = super().list_resources(src)
        return {name: size for name, size in resources.items() if contains_path(folder, _real(folder, name))}

    def _opener(self, path: pathlib.Path) -> Opener:
        folder = self._roots.check_tree(os.path.realpath(path))
        return lambda file, flags: _open_within(folder, os.path.realpath(file), flags)


def _open_within(folder: str, real: str, flags: int) -> int:
    """Open a file by its resolved path. Its author may have changed it since it was listed and resolved."""
    if not contains_path(folder, real):
        raise OutsideRoots(f"{real} is outside of {folder}")
    where, name = os.path.split(real)
    with _opened(where) as held:
        # A pipe would be waited for without end.
        file = os.open(os.path.join(held, name), flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OutsideRoots(f"{real} is not a regular file")
    return file


def _real(folder: str, name: str) -> str:
    return os.path.realpath(os.path.join(folder, name.rstrip("/")))


@contextlib.contextmanager
def _opened(path: str) -> Iterator[str]:
    """Hold a directory open and yield a path to it that stays valid even if the directory is replaced."""
    step = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
    held = os.open("/", step)
    try:
        for part in path.split("/")[1:]:
            inner = os.open(part, step, dir_fd=held)
            os.close(held)
            held = inner
        yield f"/proc/self/fd/{held}"
    finally:
        os.close(held)
