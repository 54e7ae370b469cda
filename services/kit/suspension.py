"""Whether this process has just been stopped for a while, or its machine asleep.

What arrived meanwhile is read at once when it goes on. Whoever sent a command may have been told long since
that nobody answers: obeyed now, it would undo what was asked for since.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

TICK_S = 0.5
OVERSLEPT_S = 5.0
"""Half of what an asker waits: what has waited for less may still be answered in time."""
SETTLE_S = 1.0
"""For so long after that, what is read may be from before."""


def _clock() -> float:
    """Seconds, those included in which the machine was asleep, where the system counts them."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class Awake:
    """Notices that its event loop did not run for long."""

    def __init__(self, clock: Callable[[], float] = _clock) -> None:
        self._clock = clock
        self._seen = clock()
        self._old_until = self._seen

    async def run(self) -> None:
        """Look at the clock again and again, until cancelled."""
        while True:
            await asyncio.sleep(TICK_S)
            self.overslept()

    def overslept(self) -> bool:
        """Whether what is read now may have waited for long."""
        now = self._clock()
        if now - self._seen > OVERSLEPT_S:
            self._old_until = now + SETTLE_S
        self._seen = now
        return now < self._old_until
