"""The time for which this process ran, not counting time when it was stopped or its machine slept."""

from __future__ import annotations

import time
from collections.abc import Callable

STEP_S = 2.5
"""Maximum gap that counts: longer than any delay of a once-a-second check on a merely busy machine."""


class AwakeClock:
    """Counts the seconds for which this process was able to run.

    A process that was stopped, or whose machine slept or was too busy, finds that much time passed in which
    it could do nothing; only one step of such a gap counts. To measure time with this clock, call it at least
    once per step.
    """

    def __init__(self, step_s: float = STEP_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._step_s = step_s
        self._clock = clock
        self._looked_at = clock()
        self._now = 0.0

    def __call__(self) -> float:
        """Advance the clock and return the seconds so far."""
        at = self._clock()
        self._now += min(at - self._looked_at, self._step_s)
        self._looked_at = at
        return self._now


awake = AwakeClock()
"""The clock of this process."""
