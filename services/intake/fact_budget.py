"""Limits how much one trial's script adds to the log, which is kept for good and on everybody's disk."""

from __future__ import annotations

from services.kit.bounded_dict import BoundedDict

BURST_BYTES = 128 * 1024 * 1024
"""What a script may state at once, as after an outage."""
BYTES_PER_S = 128 * 1024
"""What it may state in the long run, in bytes a second: some 180 small facts, or one of 3 MiB in 24 s."""
OVERHEAD_BYTES = 512
"""What an event takes in the log besides its body."""
REMEMBERED = 20_000
"""Number of trials whose use is remembered, the most recent ones."""


class FactBudget:
    """What each trial may still state. Only in memory: a replica that takes over begins with full budgets."""

    def __init__(self) -> None:
        self._left: BoundedDict[str, tuple[float, float]] = BoundedDict(REMEMBERED)
        """By trial: bytes left at a time in seconds."""

    def spend(self, trial_id: str, size: int, at: float) -> bool:
        """Whether a fact of this size is within the trial's budget; if so, it is counted.

        Args:
            trial_id: The trial whose script states the fact.
            size: Size of the fact as it enters the log, in bytes.
            at: The time, in seconds since the epoch.

        Returns:
            False if the fact must not enter the log.

        >>> budget = FactBudget()
        >>> budget.spend("7", BURST_BYTES, 0.0), budget.spend("7", 1, 0.0), budget.spend("7", 1, 60.0)
        (False, True, True)
        """
        left, before = self._left.get(trial_id, (float(BURST_BYTES), at))
        left = min(BURST_BYTES, left + max(0.0, at - before) * BYTES_PER_S)
        needed = size + OVERHEAD_BYTES
        allowed = needed <= left
        self._left[trial_id] = left - needed if allowed else left, at
        self._left.move_to_end(trial_id)
        return allowed
