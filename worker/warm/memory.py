"""How much memory templates may take, and when they have to go."""

from __future__ import annotations

from pathlib import Path

MEMINFO = Path("/proc/meminfo")
SHARE = 8
"""Of the memory of a host, all templates together may take one part in so many."""
SHORT = 12
"""Where less than one part in so many is available, all end."""


class Memory:
    """The memory of this host."""

    def __init__(self, meminfo: Path = MEMINFO) -> None:
        self._meminfo = meminfo
        self.budget = self._bytes("MemTotal") // SHARE
        """Bytes that all templates may take."""

    def is_short(self) -> bool:
        """Whether runs may want the memory that templates hold."""
        return self._bytes("MemAvailable") < self._bytes("MemTotal") // SHORT

    def _bytes(self, name: str) -> int:
        try:
            _, _, after = self._meminfo.read_text().partition(f"{name}:")
        except OSError:
            return 0
        return int(after.split()[0]) * 1024 if after else 0
