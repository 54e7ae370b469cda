"""Small files that are either complete or absent, even after a power loss; and handling of damaged files."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

MAX_DAMAGED_COPIES = 3
"""Number of damaged files kept per name; older ones are deleted."""
DAMAGED_MARK = ".damaged-"


def write_atomic(path: Path, content: bytes, *, mode: int = 0o600, durable: bool = True) -> None:
    """Replace a file's content atomically. Blocks until it is on disk.

    A rename alone is not enough: after a power loss, some file systems show the new name without its content.
    With `durable` False nothing is flushed, and that may happen: for files that mean nothing once the host
    has gone down, and whose readers take a damaged one for a missing one.
    """
    # Beside the file, since a rename is atomic only within one file system; one per thread, or two writers
    # would mix their contents.
    draft = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_native_id()}")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if durable:
        flush_folder(path.parent)


def overwrite(path: Path, content: bytes, reserved_bytes: int) -> None:
    """Overwrite a small record in place: one write, into space that the first write reserved.

    It needs no free space. After a power loss the record is complete, though perhaps an old version.
    """
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(file, content.ljust(reserved_bytes), 0)
    finally:
        os.close(file)


def flush_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, if the file system supports that."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(opened)
    finally:
        os.close(opened)


def set_aside(path: Path, companions: Sequence[str] = ()) -> Path:
    """Rename a damaged file so that a new one can be created. Returns its new path, for inspection.

    `companions` are suffixes of files that belong to it. The newest `MAX_DAMAGED_COPIES` are kept.
    """
    moment = time.time()
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(moment)) + f".{int(moment % 1 * 1000):03d}Z"
    target = path.with_name(f"{path.name}{DAMAGED_MARK}{stamp}")
    for ending in ("", *companions):
        with contextlib.suppress(FileNotFoundError):
            os.rename(f"{path}{ending}", f"{target}{ending}")
    _delete_old(path, companions)
    return target


def damaged_copies(path: Path, companions: Sequence[str] = ()) -> list[Path]:
    """Return the damaged copies of a file, oldest first."""
    copies = sorted(path.parent.glob(f"{path.name}{DAMAGED_MARK}*"))
    return [copy for copy in copies if not any(copy.name.endswith(ending) for ending in companions)]


def _delete_old(path: Path, companions: Sequence[str]) -> None:
    for old in damaged_copies(path, companions)[:-MAX_DAMAGED_COPIES]:
        for ending in ("", *companions):
            Path(f"{old}{ending}").unlink(missing_ok=True)
