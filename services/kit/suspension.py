"""Detects that this process was stopped for a while, or that its machine was asleep.

Messages that arrived meanwhile are all read at once on resuming. Their senders may have timed out long ago,
and obeying an old command now could undo later requests.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

TICK_S = 0.5
SUSPENDED_S = 5.0
"""Half of the time that a caller waits: a request that waited for less may still be answered in time."""
SETTLE_S = 1.0
"""Seconds after resuming during which messages may still be old."""


def _clock() -> float:
    """Return seconds including time asleep, if the system counts it."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class SuspensionDetector:
    """Detects that its event loop did not run for long."""

    def __init__(self, clock: Callable[[], float] = _clock) -> None:
        self._clock = clock
        self._last_tick = clock()
        self._old_until = self._last_tick

    async def run(self) -> None:
        """Check the clock periodically until cancelled."""
        while True:
            await asyncio.sleep(TICK_S)
            self.was_suspended()

    def was_suspended(self) -> bool:
        """Whether messages read now may have waited for long."""
        now = self._clock()
        if now - self._last_tick > SUSPENDED_S:
            self._old_until = now + SETTLE_S
        self._last_tick = now
        return now < self._old_until
