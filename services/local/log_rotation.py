"""Keeps the output of a local cluster's programs from filling the disk."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from pathlib import Path

MAX_LOG_BYTES = 64 * 1024 * 1024
"""Size in bytes at which a log is rotated."""
POLL_S = 10.0
OLD = ".log.1"


async def rotate_periodically(folder: Path, largest: int = MAX_LOG_BYTES, poll_s: float = POLL_S) -> None:
    """Check the logs periodically, forever."""
    while True:
        await asyncio.to_thread(rotate, folder, largest)
        await asyncio.sleep(poll_s)


def rotate(folder: Path, largest: int = MAX_LOG_BYTES) -> list[Path]:
    """Rotate logs that are too long, keeping one old file each. Returns those logs.

    Programs keep their logs open and only append, so a log is copied and then truncated in place. Output
    written between the two steps is lost, and so is the old file if the disk has no space for it.
    """
    long = [path for path in sorted(folder.glob("*.log")) if _size(path) > largest]
    for path in long:
        with contextlib.suppress(OSError):
            shutil.copyfile(path, path.with_suffix(OLD))
        with contextlib.suppress(OSError):
            os.truncate(path, 0)
    return long


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
