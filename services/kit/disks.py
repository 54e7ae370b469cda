"""Watches the disks that a process uses, and says when one of them has too little room for new work."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from services.kit.conditions import DISK_LOW, Conditions
from services.kit.disk_space import Space, format_size, space_at
from services.kit.process_metrics import Reading

REPORT_EVERY_S = 5.0
RESERVE_SETTING = "STEADFAST_DISK_RESERVE_MIB"


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
