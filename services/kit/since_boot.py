"""Time on this host that goes on while it is suspended, and that nobody can set."""

from __future__ import annotations

import time


def since_boot() -> float:
    """Seconds since this host started, those that it slept included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
