"""Keeps what the programs of a local cluster print from filling the disk."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from pathlib import Path

LARGEST = 64 * 1024 * 1024
"""Bytes that a log may have before it becomes the old one of its program."""
LOOK_S = 10.0
OLD = ".log.1"


async def keep_small(folder: Path, largest: int = LARGEST, look_s: float = LOOK_S) -> None:
    """Look at the logs again and again; for ever."""
    while True:
        await asyncio.to_thread(rotate, folder, largest)
        await asyncio.sleep(look_s)


def rotate(folder: Path, largest: int = LARGEST) -> list[Path]:
    """Move what too long logs hold into one older file each; returns those logs.

    Programs hold their logs open and only append, so a log is copied and then emptied under them. What is
    printed between the two is lost, and so is the old file when the disk has no room for it.
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
