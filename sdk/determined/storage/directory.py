"""Checkpoints in a directory that every host of the job mounts at the same path."""

import contextlib
import logging
import os
import pathlib
import shutil
from collections.abc import Iterable, Iterator

from determined import errors
from determined.storage import globs as _globs
from determined.storage.base import StorageManager
from determined.storage.copying import Opener, copy_tree
from determined.storage.free_space import check_room
from determined.storage.listing import Resources, Selector, choose, list_directory, local_path, only
from determined.storage.progress import Meter, Progress

logger = logging.getLogger("determined.storage")


@contextlib.contextmanager
def _naming_the_place(base: pathlib.Path) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        if not any(str(name).startswith(str(base)) for name in (e.filename, e.filename2) if name):
            raise
        user = os.getuid() if hasattr(os, "getuid") else "?"
        raise OSError(
            e.errno,
            f"the checkpoint storage {base} refuses user id {user}: {e.strerror or e}; "
            "check that the directory exists, has free space and is writable",
            e.filename,
        ) from e


def _remove(root: pathlib.Path, names: Resources) -> None:
    # By open directories and not by path, because another process could put a link in the place of one.
    # Deepest first, so that directories are empty when they are removed.
    for folder, folders, files, held in os.fwalk(root, topdown=False):
        prefix = "" if folder == str(root) else os.path.relpath(folder, root) + "/"
        for name in files:
            if prefix + name in names:
                os.unlink(name, dir_fd=held)
        for name in folders:
            if f"{prefix}{name}/" in names:
                os.rmdir(name, dir_fd=held)
            elif prefix + name in names:
                os.unlink(name, dir_fd=held)


def _remove_tree(path: pathlib.Path) -> None:
    # Several ranks may discard the same checkpoint at the same time.
    while path.is_dir():
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)


class SharedFSStorageManager(StorageManager):
    """Stores each checkpoint as a directory below `base_path`. Stored files can be opened in place."""

    TYPE = "shared_fs"

    def __init__(self, base_path: "str | os.PathLike[str]") -> None:
        self._base = pathlib.Path(base_path)

    def __repr__(self) -> str:
        return f"directory {self._base}"

    @property
    def base_path(self) -> pathlib.Path:
        """The directory with one subdirectory per id."""
        return self._base

    def _existing(self, src: str) -> pathlib.Path:
        path = local_path(self._base, src)
        if not path.is_dir():
            raise errors.CheckpointNotFound(f"there is no checkpoint {src} in {self._base}")
        return path

    def upload(
        self,
        src: "str | os.PathLike[str]",
        dst: str,
        paths: Iterable[str] | None = None,
        *,
        progress: Progress | None = None,
        checksums: bool = True,
    ) -> None:
        names = only(list_directory(src), paths)
        if not names and paths is not None:
            return
        check_room(self._base, sum(names.values()))
        meter = Meter(sum(names.values()), progress)
        with _naming_the_place(self._base):
            copy_tree(pathlib.Path(src), local_path(self._base, dst), names, meter)

    def download(
        self,
        src: str,
        dst: "str | os.PathLike[str]",
        selector: Selector | None = None,
        *,
        progress: Progress | None = None,
    ) -> None:
        path = self._existing(src)
        names = choose(self.list_resources(src), selector)
        if names or selector is None:
            meter = Meter(sum(names.values()), progress)
            copy_tree(path, pathlib.Path(dst), names, meter, self._opener(path))

    def _opener(self, path: pathlib.Path) -> Opener | None:
        """How the files of what is stored at `path` are opened; None: as usual."""
        return None

    def list_resources(self, src: str) -> Resources:
        return list_directory(self._existing(src))

    def delete(self, tgt: str, globs: Iterable[str]) -> Resources:
        path = local_path(self._base, tgt)
        if path.is_symlink():
            raise ValueError(f"{path} is a symbolic link, and its target is not deleted: delete it by hand")
        if not path.is_dir():
            return {}
        with _naming_the_place(self._base):
            patterns = list(globs)
            if patterns == ["**/*"]:
                _remove_tree(path)
                return {}
            # Links are removed, but never their targets.
            matched, left = _globs.split(list_directory(path, links=True), patterns)
            _remove(path, matched)
            if not left:
                path.rmdir()
            return left

    @contextlib.contextmanager
    def restore_path(self, src: str, selector: Selector | None = None) -> Iterator[pathlib.Path]:
        path = self._existing(src)
        if selector is not None:
            logger.warning(
                "Ignoring partial checkpoint download from shared_fs; "
                "all files will be directly accessible from shared_fs."
            )
        yield path

    def store_path_is_direct_access(self) -> bool:
        return True

    def pre_store_path(self, dst: str) -> pathlib.Path:
        path = local_path(self._base, dst)
        check_room(self._base, 0)
        with _naming_the_place(self._base):
            path.mkdir(parents=True, exist_ok=True)
        return path

    def post_store_path(self, src: pathlib.Path, dst: str, paths: Iterable[str] | None = None) -> None:
        """Do nothing: the files were written in place."""

    def discard(self, src: pathlib.Path, dst: str) -> None:
        self.delete_quietly(dst)
