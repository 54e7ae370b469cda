"""Signs of life of scripts that run elsewhere, thinned out."""

from __future__ import annotations

from collections import OrderedDict

MOST = 10_000
THIN_S = 20.0
"""Signs of life that follow one another faster say nothing new."""


class Beats:
    """When this gateway last passed on a sign of life of each run, so that it passes on few."""

    def __init__(self) -> None:
        self._last: OrderedDict[int, tuple[int, float]] = OrderedDict()

    def is_due(self, trial_id: int, run: int, now: float) -> bool:
        """Whether another sign of life says something new; `now` in seconds of any clock that never jumps."""
        known, at = self._last.get(trial_id, (0, 0.0))
        return known != run or now - at > THIN_S

    def note(self, trial_id: int, run: int, now: float) -> None:
        """One was passed on. Of trials beyond the newest few thousand the time is forgotten."""
        self._last[trial_id] = run, now
        self._last.move_to_end(trial_id)
        if len(self._last) > MOST:
            self._last.popitem(last=False)
