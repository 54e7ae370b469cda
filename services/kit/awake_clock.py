"""Time in which this process ran: without what passed while it was stopped, or its machine slept."""

from __future__ import annotations

import time
from collections.abc import Callable

STEP_S = 2.5
"""Longer than those who look once a second are kept from it on a machine that is merely busy."""


class AwakeClock:
    """Seconds in which this process was there to look.

    A process that was stopped, or whose machine slept or was too busy, comes back to find that much time has
    passed in which nobody could do anything; of such a gap only one step counts. So who measures a time by it
    has to look at least once in every step.
    """

    def __init__(self, step_s: float = STEP_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._step_s = step_s
        self._clock = clock
        self._looked_at = clock()
        self._now = 0.0

    def __call__(self) -> float:
        """Look; returns the seconds so far."""
        at = self._clock()
        self._now += min(at - self._looked_at, self._step_s)
        self._looked_at = at
        return self._now


awake = AwakeClock()
"""That of this process."""
