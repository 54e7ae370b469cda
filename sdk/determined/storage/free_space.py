"""Checks whether a disk has room for a checkpoint, before the first byte is written."""

import errno
import os
import pathlib

RESERVED_BYTES = 1 << 30
RESERVED_PART = 40
"""This fraction (1/n) of a disk stays free, at most `RESERVED_BYTES`: other programs write to it too."""
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def check_room(folder: pathlib.Path, size_bytes: int) -> None:
    """Raise OSError (ENOSPC) if too little space would remain. Half a checkpoint is worse than none.

    `folder` need not exist yet.
    """
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        usage = os.statvfs(place)
    except OSError:
        # A later write will report the error.
        return
    free, reserved = usage.f_bavail * usage.f_frsize, usage.f_blocks * usage.f_frsize // RESERVED_PART
    reserved = min(reserved, RESERVED_BYTES)
    if free >= size_bytes + reserved:
        return
    wanted = f"it takes {_in_words(size_bytes)}, " if size_bytes else ""
    raise OSError(
        errno.ENOSPC,
        f"the checkpoint is not stored: {wanted}{_in_words(free)} are free at {folder}, and "
        f"{_in_words(reserved)} of these are reserved for running programs; "
        f"make room for {_in_words(size_bytes + reserved - free)} more there",
    )


def _in_words(count: float) -> str:
    unit = 0
    while count >= 1000 and unit < len(_UNITS) - 1:
        count, unit = count / 1024, unit + 1
    return f"{count:.3g} {_UNITS[unit]}" if unit else f"{int(count)} bytes"
