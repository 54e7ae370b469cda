"""Throttles the heartbeats of scripts that run outside the cluster."""

from __future__ import annotations

from services.kit.bounded_dict import BoundedDict

MAX_TRIALS = 10_000
MIN_INTERVAL_S = 20.0
"""Minimum interval between heartbeats, in seconds. More frequent ones add no information."""


class HeartbeatThrottle:
    """Remembers when this gateway last passed on a heartbeat of each run."""

    def __init__(self) -> None:
        self._last: BoundedDict[int, tuple[int, float]] = BoundedDict(MAX_TRIALS)

    def is_due(self, trial_id: int, run: int, now: float) -> bool:
        """Whether the next heartbeat should be passed on. `now` is in seconds of a monotonic clock."""
        last_run, at = self._last.get(trial_id, (0, 0.0))
        # A new run at once: its first heartbeat says that the script is back.
        return last_run != run or now - at > MIN_INTERVAL_S

    def record_sent(self, trial_id: int, run: int, now: float) -> None:
        """Record that a heartbeat was passed on. Only the most recent `MAX_TRIALS` trials are remembered."""
        self._last[trial_id] = run, now
