"""Free disk space, and how much of it is reserved for running work.

A full disk stops everything: the broker refuses all messages until it is restarted, and databases cannot be
written. New work is therefore refused while there is still room for running work to continue.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from det_contracts.problems import Problem, Refused
from services.kit.conditions import DISK_LOW, Conditions
from services.kit.process_metrics import Reading

MAX_RESERVE = 2 << 30
RESERVE_DIVISOR = 20
"""The default reserve is the disk size divided by this."""
STREAM_DIVISOR = 8
"""A stream that is not kept forever may take up to the disk size divided by this."""
MAX_STREAM = 16 << 30
REPORT_EVERY_S = 5.0
UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
RESERVE_SETTING = "STEADFAST_DISK_RESERVE_MIB"


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
    """Build the refusal of new work after `shortage` has found a shortage."""
    return Refused(Problem("no_space", f"{what} is refused: {missing}. Running work continues"))


class Disks:
    """The disks in use, by what is stored there."""

    def __init__(self, folders: Mapping[str, Path], reserve_mib: int = 0) -> None:
        self._folders: dict[str, Path] = dict(folders)
        self._configured_reserve = reserve_mib << 20
        self._spaces_by_name: dict[str, Space] = {}

    def shortage(self, needed: Mapping[str, int], also: Mapping[str, Path]) -> str:
        """Describe the first disk with too little room for new work; empty if there is none. Blocks.

        `needed` gives the bytes of the new work per kind of storage; `also` names further folders.
        """
        for name, space in _spaces({**self._folders, **also}).items():
            reserved, added = space.reserve(self._configured_reserve), needed.get(name, 0)
            if space.free < reserved + added:
                return self._describe_shortage(name, space, reserved, added)
        return ""

    def _describe_shortage(self, name: str, space: Space, reserved: int, added: int) -> str:
        wanted = f"{format_size(added)} are needed and " if added else ""
        return (
            f"the disk of the {name} has {format_size(space.free)} free at {space.path}; {wanted}"
            f"{format_size(reserved)} are reserved for running work ({RESERVE_SETTING}): make room for "
            f"{format_size(reserved + added - space.free)} more there"
        )

    async def report_shortage(self, conditions: Conditions) -> None:
        """Report low disk space as a condition until cancelled."""
        while True:
            missing = await asyncio.to_thread(self.shortage, {}, {})
            conditions.set_condition(DISK_LOW, {"": missing} if missing else {})
            await asyncio.sleep(REPORT_EVERY_S)

    async def refresh(self) -> None:
        """Refresh the figures for the readings."""
        self._spaces_by_name = await asyncio.to_thread(_spaces, self._folders)

    def readings(self) -> Iterable[Reading]:
        """Prometheus readings of the disks."""
        for name, help, values in (
            (
                "disk_free_bytes",
                "Free space of the disk",
                [s.free for s in self._spaces_by_name.values()],
            ),
            ("disk_bytes", "Size of that disk", [s.total for s in self._spaces_by_name.values()]),
            (
                "disk_reserve_bytes",
                "Free space below which new work is refused",
                [s.reserve(self._configured_reserve) for s in self._spaces_by_name.values()],
            ),
        ):
            by_disk = {
                (disk,): float(value) for disk, value in zip(self._spaces_by_name, values, strict=True)
            }
            yield Reading(name, help, ("disk",), by_disk)


def _spaces(folders: Mapping[str, Path]) -> dict[str, Space]:
    spaces = {}
    for name, folder in folders.items():
        # An unavailable disk is not a full one; its users report it themselves.
        with contextlib.suppress(OSError):
            spaces[name] = space_at(folder)
    return spaces
