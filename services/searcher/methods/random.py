"""Random sampling (searchers spec, section 3)."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from services.searcher.methods.protocol import (
    INVALID_HP_REASONS,
    Close,
    Declaration,
    Operation,
    SearchSettings,
    ValidateAfter,
    check_trial_count,
)
from services.searcher.methods.rng import Rng
from services.searcher.methods.sampling import draw_trial
from services.searcher.methods.table import Table


class RandomSearch(msgspec.Struct, frozen=True, tag="random"):
    """Trains `max_trials` random points, at most `max_concurrent` at once (0: all)."""

    compares_trials: ClassVar[bool] = False
    space: dict[str, Any]
    max_length: int
    max_trials: int
    max_concurrent: int
    replaces_invalid: bool
    """Whether a trial that reports invalid hyperparameters is replaced by another."""
    created: int = 0

    def initial(self, rng: Rng) -> tuple[RandomSearch, list[Operation]]:
        count = min(self.max_trials, self.max_concurrent) if self.max_concurrent else self.max_trials
        check_trial_count(count)
        return self._create(count, rng)

    def _create(self, count: int, rng: Rng) -> tuple[RandomSearch, list[Operation]]:
        operations: list[Operation] = []
        for _ in range(count):
            created_trial = draw_trial(self.space, rng)
            operations += [
                created_trial,
                ValidateAfter(created_trial.request_id, self.max_length),
                Close(created_trial.request_id),
            ]
        return msgspec.structs.replace(self, created=self.created + count), operations

    def trial_created(self, request_id: str) -> tuple[RandomSearch, list[Operation]]:
        return self, []

    def validation_completed(
        self, request_id: str, metric: Any, rng: Rng
    ) -> tuple[RandomSearch, list[Operation]]:
        return self, []

    def exited_early(self, request_id: str, reason: str, rng: Rng) -> tuple[RandomSearch, list[Operation]]:
        if reason in INVALID_HP_REASONS and self.replaces_invalid:
            # The end of the trial follows as an event of its own and creates the replacement.
            return msgspec.structs.replace(self, created=self.created - 1), []
        return self, []

    def trial_closed(self, request_id: str, rng: Rng) -> tuple[RandomSearch, list[Operation]]:
        return self._create(1, rng) if self.created < self.max_trials else (self, [])

    def progress(self, units: Table[float], finished: int) -> float:
        done = self.max_length * finished + sum(units.values())
        return done / (self.max_length * self.max_trials)


def _create(settings: SearchSettings) -> RandomSearch:
    limits = settings.searcher["max_trials"], settings.searcher["max_concurrent_trials"]
    return RandomSearch(settings.space, settings.max_length, *limits, replaces_invalid=True)


METHOD = Declaration(RandomSearch, _create)
