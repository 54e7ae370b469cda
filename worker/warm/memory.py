"""How much memory templates may take, and when they must end."""

from __future__ import annotations

from pathlib import Path

MEMINFO = Path("/proc/meminfo")
BUDGET_DIVISOR = 8
"""All templates together may take one part in this many of the host's memory."""
SHORT_DIVISOR = 12
"""All templates end when less than one part in this many of the memory is available."""


class Memory:
    """The memory of this host."""

    def __init__(self, meminfo: Path = MEMINFO) -> None:
        self._meminfo = meminfo
        self.budget = self._bytes("MemTotal") // BUDGET_DIVISOR
        """Bytes that all templates together may take."""

    def is_short(self) -> bool:
        """Whether runs may need the memory that templates hold."""
        return self._bytes("MemAvailable") < self._bytes("MemTotal") // SHORT_DIVISOR

    def _bytes(self, name: str) -> int:
        try:
            _, _, after = self._meminfo.read_text().partition(f"{name}:")
        except OSError:
            return 0
        return int(after.split()[0]) * 1024 if after else 0
