"""Limits how much one trial's script, worker or person adds to the log, which is kept for good on everybody's
disk."""

from __future__ import annotations

import math

from det_contracts.problems import Problem, Refused
from services.kit.bounded_dict import BoundedDict

BURST_BYTES = 128 * 1024 * 1024
"""What may be added at once, as after an outage, or when thousands of experiments are submitted."""
BYTES_PER_S = 128 * 1024
"""What may be added in the long run, in bytes a second: some 180 small facts, or one of 3 MiB in 24 s."""
OVERHEAD_BYTES = 512
"""What an event takes in the log besides its body."""
REMEMBERED = 20_000
"""Number of trials or people whose use is remembered, the most recent ones."""


class LogBudget:
    """What each one may still add. Only in memory: a replica that takes over begins with full budgets."""

    def __init__(self, share: float = 1) -> None:
        """`share` multiplies what may be added in the long run, not what may be added at once."""
        self._share = share
        self._left: BoundedDict[str, tuple[float, float]] = BoundedDict(REMEMBERED)
        """By id: bytes left at a time in seconds; negative where more was added."""

    def spend(self, who: str, size: int, at: float) -> bool:
        """Whether an event of this size is within the budget; if so, it is counted.

        Args:
            who: Who adds it, such as the id of the trial whose script states a fact.
            size: Size of the event as it enters the log, in bytes.
            at: The time, in seconds since the epoch.

        Returns:
            False if the event must not enter the log.

        >>> budget = LogBudget()
        >>> budget.spend("7", BURST_BYTES, 0.0), budget.spend("7", 1, 0.0), budget.spend("7", 1, 60.0)
        (False, True, True)
        """
        allowed = size + OVERHEAD_BYTES <= self._left_at(who, at)
        # A refused event is charged nothing, or a script that repeats it would never get through.
        self.charge(who, size + OVERHEAD_BYTES if allowed else 0, at)
        return allowed

    def charge(self, who: str, size: int, at: float) -> None:
        """Count `size` bytes that were added, even if they are more than was left."""
        self._left[who] = self._left_at(who, at) - size, at

    def wait_s(self, who: str, at: float) -> float:
        """Seconds until something is left; 0 if there is."""
        return max(0.0, -self._left_at(who, at)) / (self._share * BYTES_PER_S)

    def check(self, who: str, at: float) -> None:
        """Raise `Refused` (exhausted) while more was added than allowed."""
        if self._left_at(who, at) <= 0:
            wait_s = math.ceil(self.wait_s(who, at)) + 1
            message = (
                f"'{who}' has added more than {BURST_BYTES >> 20} MiB to the log, which is kept for good: "
                f"further changes are taken in {wait_s} s; send fewer or smaller ones"
            )
            raise Refused(Problem("exhausted", message, wait_s))

    def _left_at(self, who: str, at: float) -> float:
        left, before = self._left.get(who, (float(BURST_BYTES), at))
        # A clock that is set back must not take anything away.
        return min(BURST_BYTES, left + max(0.0, at - before) * self._share * BYTES_PER_S)
