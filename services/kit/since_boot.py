"""Time on this host that continues during suspend and cannot be set."""

from __future__ import annotations

import time


def since_boot() -> float:
    """Return the seconds since this host booted, including time asleep."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
