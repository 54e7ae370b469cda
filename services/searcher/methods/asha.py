"""Asynchronous successive halving, in its promoting and its stopping variant (searchers spec, section 5).

After "A System for Massively Parallel Hyperparameter Tuning" (Li et al., 2020). Trials climb rungs of growing
length; only the best `1 / divisor` of each rung continue.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from services.searcher.methods.bracket_step import BracketStep
from services.searcher.methods.protocol import INVALID_HP_REASONS, MethodError, Operation, check_trial_count
from services.searcher.methods.rng import Rng
from services.searcher.methods.rungs import Rung, rung_lengths
from services.searcher.methods.table import Table


class AshaSearch(msgspec.Struct, frozen=True, tag="async_halving"):
    """One halving bracket."""

    compares_trials: ClassVar[bool] = True
    space: dict[str, Any]
    max_trials: int
    divisor: float
    max_concurrent: int
    stop_once: bool
    smaller_is_better: bool
    rungs: tuple[Rung, ...]
    rung_of: Table[int] = Table()
    """Every trial ever placed in a rung, and the highest rung it was placed in."""
    awaited: Table[bool] = Table()
    """Trials that have not reported in their current rung."""
    early: Table[bool] = Table()
    """Trials that exited early."""
    closed: Table[bool] = Table()
    """Trials that were told to close."""
    completed: int = 0
    invalid: int = 0

    @classmethod
    def bracket(
        cls,
        space: dict[str, Any],
        *,
        num_rungs: int,
        max_length: int,
        max_trials: int,
        divisor: float,
        max_concurrent: int,
        stop_once: bool,
        smaller_is_better: bool,
    ) -> AshaSearch:
        """A bracket before its start. The top rung has `max_length`."""
        rungs = tuple(Rung(length) for length in rung_lengths(num_rungs, max_length, divisor))
        return cls(space, max_trials, float(divisor), max_concurrent, stop_once, smaller_is_better, rungs)

    def initial(self, rng: Rng) -> tuple[AshaSearch, list[Operation]]:
        step = BracketStep(self, rng)
        if self.max_concurrent > 0:
            count = min(self.max_concurrent, self.max_trials)
        else:
            count = max(1, min(int(self.divisor ** (len(self.rungs) - 1)), self.max_trials))
        check_trial_count(count)
        for _ in range(count):
            step.create()
        return step.result()

    def trial_created(self, request_id: str) -> tuple[AshaSearch, list[Operation]]:
        self._require_known(request_id)
        # Only now, and not with `Create`: until its trial is announced, nobody will report there.
        rungs = (self.rungs[0].with_outstanding(1), *self.rungs[1:])
        return msgspec.structs.replace(self, rungs=rungs), []

    def validation_completed(
        self, request_id: str, metric: Any, rng: Rng
    ) -> tuple[AshaSearch, list[Operation]]:
        # A trial reports each rung once. To count a repeat would promote it against itself.
        if request_id not in self.awaited:
            raise MethodError(
                f"trial {self._require_known(request_id)} reported a metric that was not requested"
            )
        step = BracketStep(self, rng)
        # From here on, smaller is better.
        step.report(request_id, metric if self.smaller_is_better else -metric)
        return step.result()

    def exited_early(self, request_id: str, reason: str, rng: Rng) -> tuple[AshaSearch, list[Operation]]:
        self._require_known(request_id)
        step = BracketStep(self, rng)
        if reason in INVALID_HP_REASONS:
            step.withdraw(request_id)
        else:
            step.record_exit(request_id)
        return step.result()

    def trial_closed(self, request_id: str, rng: Rng) -> tuple[AshaSearch, list[Operation]]:
        return msgspec.structs.replace(self, completed=self.completed + 1), []

    def progress(self, units: Table[float], finished: int) -> float:
        reported = len(self.rungs[0].entries)
        # A sixth is kept for the climb of those that go on: the rule of 0.25 (spec 5.7).
        progress = reported / (1.2 * self.max_trials)
        if reported == self.max_trials:
            progress = max(progress, (self.completed - self.invalid) / self.max_trials)
        return min(progress, 1.0)

    def _require_known(self, request_id: str) -> str:
        if request_id not in self.rung_of:
            raise MethodError(f"trial {request_id} does not belong to this search")
        return request_id
