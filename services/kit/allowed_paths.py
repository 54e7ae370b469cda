"""Restricts which user-named files the platform's own processes touch (docs/decisions/0030).

Resolving a path is not enough if a link can be put in its place afterwards. A resolved and permitted path is
therefore opened component by component without following links.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from det_contracts.roots import (
    OutsideRoots,
    Roots,
    contains_path,
    split_paths,
    valid_checkpoint_id,
    valid_file_name,
)
from services.kit.settings import ServiceSettings

_STEP = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class ReachSettings(ServiceSettings):
    """Settings of processes that touch user-named files."""

    checkpoints: str = ""
    """Checkpoint storage of experiments that name none: an absolute directory, or a YAML map."""
    storage_roots: str = ""
    """Further directories, separated by `:`, in which checkpoint storage may be tested, read and deleted."""
    private_paths: str = ""
    """Directories and files, separated by `:`, that are never touched, even inside such a directory."""


def roots_of(settings: ReachSettings, own: Iterable[str | Path | None], storage: Any = None) -> Roots:
    """Return where a process may read and delete.

    `own` are the files and directories of its settings; `storage` is the cluster's, if known as a map.
    """
    roots = list(split_paths(settings.storage_roots))
    if settings.checkpoints.startswith("/"):
        roots.append(settings.checkpoints)
    if storage and storage["type"] in ("shared_fs", "directory"):
        roots.append(str(directory_of(storage)))
    private = [*split_paths(settings.private_paths), settings.nats_credentials, settings.log_disk]
    paths = [str(path) for path in (*private, *own) if path]
    return Roots(_resolved(roots), _resolved(path for path in paths if path.startswith("/")))


def _resolved(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(os.path.realpath(path) for path in paths))


def directory_of(storage: Mapping[str, Any]) -> Path:
    """Return the directory of a file system storage."""
    if storage["type"] == "directory":
        return Path(storage["container_path"])
    return Path(storage["host_path"]) / (storage.get("storage_path") or "")


def storage_folder(storage: Mapping[str, Any], roots: Roots) -> Path:
    """Return the resolved directory of a storage's checkpoints. Raises `OutsideRoots`."""
    path = str(directory_of(storage))
    if "\0" in path or not os.path.isabs(path):
        raise OutsideRoots(f"{path!r} is not a valid checkpoint storage path")
    return Path(roots.check(os.path.realpath(path)))


def is_within(storage: Mapping[str, Any], roots: Roots) -> bool:
    """Whether a storage is a directory in which the platform may test, read and delete."""
    if storage["type"] not in ("shared_fs", "directory"):
        return False
    try:
        storage_folder(storage, roots)
    except OutsideRoots:
        return False
    return True


def checkpoint_folder(storage: Mapping[str, Any], uuid: str, roots: Roots) -> Path:
    """Return the directory of a checkpoint. Raises `OutsideRoots`."""
    folder = storage_folder(storage, roots) / valid_checkpoint_id(uuid)
    return Path(roots.check_tree(str(folder)))


def open_file(folder: Path, name: str) -> BinaryIO:
    """Open a file of a checkpoint for reading. Raises `OutsideRoots`, or OSError if it does not exist.

    A link in a checkpoint may lead to another place inside it. `folder` comes from `checkpoint_folder`.
    """
    real_path = os.path.realpath(folder / valid_file_name(name))
    if not contains_path(str(folder), real_path):
        raise OutsideRoots(f"{folder / name} leads out of its checkpoint")
    with _parent(real_path) as parent:
        file = os.open(os.path.basename(real_path), _FILE, dir_fd=parent)
    try:
        # Reading from a pipe would block forever.
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OutsideRoots(f"{folder / name} is not a regular file")
        return os.fdopen(file, "rb")
    except BaseException:
        os.close(file)
        raise


@contextlib.contextmanager
def _parent(path: str) -> Iterator[int]:
    """Open the parent directory of a resolved path without following links created in the meantime."""
    held = os.open("/", _STEP)
    try:
        for part in path.split("/")[1:-1]:
            inner = os.open(part, _STEP, dir_fd=held)
            os.close(held)
            held = inner
        yield held
    finally:
        os.close(held)


def make_for_all(folder: Path, names: Iterable[str]) -> None:
    """Make folders, one in the other, of which the last is one to which every user may add and none may list.

    Does so as root in a `folder` that is meant for all users, and nothing elsewhere or in what others own:
    whoever owns a folder can replace everything in it. `folder` comes from `storage_folder`. Raises OSError.
    """
    with _parent(f"{folder}/.") as held:
        status = os.fstat(held)
        if status.st_uid != 0 or not status.st_mode & stat.S_IWOTH or not status.st_mode & stat.S_ISVTX:
            return
        place = os.dup(held)
    try:
        for name in names:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=place)
            inner = os.open(name, _STEP, dir_fd=place)
            os.close(place)
            place = inner
            if os.fstat(place).st_uid != 0:
                return
        # A descriptor that only names its folder cannot change it by itself.
        os.chmod(f"/proc/self/fd/{place}", 0o1733)  # noqa: S103 - it is for all, and nobody removes others' files
    finally:
        os.close(place)
