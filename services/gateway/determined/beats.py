"""Throttles the heartbeats of scripts that run outside the cluster."""

from __future__ import annotations

from services.kit.recent import Recent

MOST = 10_000
THIN_S = 20.0
"""Minimum interval between heartbeats, in seconds. More frequent ones add no information."""


class Beats:
    """Remembers when this gateway last passed on a heartbeat of each run."""

    def __init__(self) -> None:
        self._last: Recent[int, tuple[int, float]] = Recent(MOST)

    def is_due(self, trial_id: int, run: int, now: float) -> bool:
        """Whether the next heartbeat should be passed on. `now` is in seconds of a monotonic clock."""
        known, at = self._last.get(trial_id, (0, 0.0))
        return known != run or now - at > THIN_S

    def note(self, trial_id: int, run: int, now: float) -> None:
        """Record that a heartbeat was passed on. Only the most recent `MOST` trials are remembered."""
        self._last[trial_id] = run, now
