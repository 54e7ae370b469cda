"""Free disk space, and how much of it is reserved for running work.

A full disk stops everything: the broker refuses all messages until it is restarted, and databases cannot be
written. New work is therefore refused while there is still room for running work to continue.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from det_contracts.problems import Problem, Refused

MAX_RESERVE = 2 << 30
RESERVE_DIVISOR = 20
"""The default reserve is the disk size divided by this."""
STREAM_DIVISOR = 8
"""A stream that is not kept forever may take up to the disk size divided by this."""
MAX_STREAM = 16 << 30
UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


class Space(NamedTuple):
    """Space on one disk, in bytes."""

    path: Path
    """The path that was asked about."""
    free: int
    """Available to users without privileges."""
    total: int

    def reserve(self, chosen: int = 0) -> int:
        """Return the reserve for running work. `chosen` is the setting in bytes, or 0 for the default."""
        return min(chosen or MAX_RESERVE, self.total // RESERVE_DIVISOR if not chosen else self.total)


def space_at(path: Path) -> Space:
    """Return the space on a path's disk; the path need not exist yet. Raises OSError."""
    existing = path
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    # `f_bavail`, not `f_bfree`: the rest is reserved for root.
    file_system = os.statvfs(existing)
    return Space(
        path, file_system.f_bavail * file_system.f_frsize, file_system.f_blocks * file_system.f_frsize
    )


def format_size(count: float) -> str:
    """Format a number of bytes with three significant digits."""
    unit = 0
    while count >= 1000 and unit < len(UNITS) - 1:
        count, unit = count / 1024, unit + 1
    return f"{count:.3g} {UNITS[unit]}" if unit else f"{int(count)} bytes"


def stream_limit(setting_mib: int, log_disk: Path | None) -> int:
    """Return how many bytes REPORTS and LOGS may each take: part of the broker's disk, at most the setting.

    A setting of 0 means at most 16 GiB. If this host cannot see the disk, only that maximum applies.
    """
    most = setting_mib << 20 or MAX_STREAM
    if log_disk is None:
        return most
    return min(most, space_at(log_disk).total // STREAM_DIVISOR)


def no_space_error(what: str, missing: str) -> Refused:
    """Build the refusal of new work after `Disks.shortage` has found a shortage."""
    return Refused(Problem("no_space", f"{what} is refused: {missing}. Running work continues"))
