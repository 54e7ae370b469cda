"""Small files that are whole or not there, also after a power loss; and what becomes of a damaged one."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

KEPT = 3
"""Damaged files of one name that are kept, the newest ones."""
MARK = ".damaged-"


def write_whole(path: Path, content: bytes, *, mode: int = 0o600, lasting: bool = True) -> None:
    """Have a file hold exactly `content`, or what it held before; blocks until that is on the disk.

    A rename alone is not enough: after a power loss some file systems have the new name and no content.
    Where `lasting` is False the file may be gone after one, and is never another.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_native_id()}")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if lasting:
        flush_folder(path.parent)


def overwrite(path: Path, content: bytes, room: int) -> None:
    """Write a small record over the one that is there: one write, into room that is taken at the first.

    So it needs no free space, and is whole or as before after a power loss, though perhaps an old one.
    """
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(file, content.ljust(room), 0)
    finally:
        os.close(file)


def flush_folder(folder: Path) -> None:
    """Have the names in a folder on the disk, where its file system can do that for folders."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(opened)
    finally:
        os.close(opened)


def set_aside(path: Path, companions: Sequence[str] = ()) -> Path:
    """Rename a damaged file, so that another can be made and this one can be looked at; returns where it is.

    `companions` are endings of files that belong to it. Of several the newest `KEPT` are kept.
    """
    moment = time.time()
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(moment)) + f".{int(moment % 1 * 1000):03d}Z"
    target = path.with_name(f"{path.name}{MARK}{stamp}")
    for ending in ("", *companions):
        with contextlib.suppress(FileNotFoundError):
            os.rename(f"{path}{ending}", f"{target}{ending}")
    _forget_old(path, companions)
    return target


def aside(path: Path, companions: Sequence[str] = ()) -> list[Path]:
    """What was set aside of a file, the oldest first."""
    found = sorted(path.parent.glob(f"{path.name}{MARK}*"))
    return [one for one in found if not any(one.name.endswith(ending) for ending in companions)]


def _forget_old(path: Path, companions: Sequence[str]) -> None:
    for old in aside(path, companions)[:-KEPT]:
        for ending in ("", *companions):
            Path(f"{old}{ending}").unlink(missing_ok=True)
