"""What the platform's own processes touch of the files that people name (docs/decisions/0030).

Resolving is of no use if somebody can put a link in the place afterwards: what was resolved and found to be
allowed is opened step by step, and no step follows a link.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from det_contracts.roots import OutOfReach, Roots, checkpoint_id, holds, name_inside, split
from services.kit.settings import ServiceSettings

_STEP = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class ReachSettings(ServiceSettings):
    """Of those who touch files that people name."""

    checkpoints: str = ""
    """Checkpoint storage of experiments that name none: an absolute directory, or a map in YAML."""
    storage_roots: str = ""
    """Directories, with `:`, beside that of `checkpoints`: there, checkpoints are tried, read and deleted."""
    private_paths: str = ""
    """Directories and files, with `:`, that are not touched even if they lie in such a directory."""


def roots_of(settings: ReachSettings, own: Iterable[str | Path | None], storage: Any = None) -> Roots:
    """Where a process may read and delete.

    `own` are the files and directories of its settings, `storage` the cluster's, where it is known as a map.
    """
    roots = list(split(settings.storage_roots))
    if settings.checkpoints.startswith("/"):
        roots.append(settings.checkpoints)
    if storage and storage["type"] in ("shared_fs", "directory"):
        roots.append(str(directory_of(storage)))
    private = [*split(settings.private_paths), settings.nats_credentials, settings.log_disk]
    paths = [str(one) for one in (*private, *own) if one]
    return Roots(_resolved(roots), _resolved(path for path in paths if path.startswith("/")))


def _resolved(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(os.path.realpath(path) for path in paths))


def directory_of(storage: Mapping[str, Any]) -> Path:
    """The directory of a storage on a file system."""
    if storage["type"] == "directory":
        return Path(storage["container_path"])
    return Path(storage["host_path"]) / (storage.get("storage_path") or "")


def storage_folder(storage: Mapping[str, Any], roots: Roots) -> Path:
    """Where the checkpoints of a storage lie, resolved; raises `OutOfReach`."""
    path = str(directory_of(storage))
    if "\0" in path or not os.path.isabs(path):
        raise OutOfReach(f"{path!r} is no path of a checkpoint storage")
    return Path(roots.check(os.path.realpath(path)))


def is_within(storage: Mapping[str, Any], roots: Roots) -> bool:
    """Whether a storage is a directory that the platform may try, read and delete in."""
    if storage["type"] not in ("shared_fs", "directory"):
        return False
    try:
        storage_folder(storage, roots)
    except OutOfReach:
        return False
    return True


def checkpoint_folder(storage: Mapping[str, Any], uuid: str, roots: Roots) -> Path:
    """Where the files of a checkpoint lie; raises `OutOfReach`."""
    folder = storage_folder(storage, roots) / checkpoint_id(uuid)
    return Path(roots.check_tree(str(folder)))


def open_file(folder: Path, name: str) -> BinaryIO:
    """A file of a checkpoint for reading; raises `OutOfReach`, or OSError where there is none.

    A link in a checkpoint may lead to another place in it. `folder` is as `checkpoint_folder` gives it.
    """
    found = os.path.realpath(folder / name_inside(name))
    if not holds(str(folder), found):
        raise OutOfReach(f"{folder / name} leads out of its checkpoint")
    with _parent(found) as parent:
        file = os.open(os.path.basename(found), _FILE, dir_fd=parent)
    try:
        # A pipe would be waited for, for ever.
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OutOfReach(f"{folder / name} is no file")
        return os.fdopen(file, "rb")
    except BaseException:
        os.close(file)
        raise


@contextlib.contextmanager
def _parent(path: str) -> Iterator[int]:
    """The directory of a resolved path, opened without following a link that came in the meantime."""
    held = os.open("/", _STEP)
    try:
        for part in path.split("/")[1:-1]:
            inner = os.open(part, _STEP, dir_fd=held)
            os.close(held)
            held = inner
        yield held
    finally:
        os.close(held)
