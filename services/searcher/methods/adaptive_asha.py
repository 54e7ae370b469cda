"""Several halving brackets side by side (searchers spec, section 6)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from services.searcher.methods.asha import AshaSearch
from services.searcher.methods.protocol import Declaration, MethodError, Operation, SearchSettings
from services.searcher.methods.rng import Rng
from services.searcher.methods.rungs import MAX_RUNGS
from services.searcher.methods.table import Table


class Tournament(msgspec.Struct, frozen=True, tag="tournament"):
    """Independent brackets that share one random generator.

    A trial belongs to the bracket that created it.
    """

    compares_trials: ClassVar[bool] = True
    brackets: tuple[AshaSearch, ...]

    def initial(self, rng: Rng) -> tuple[Tournament, list[Operation]]:
        state, operations = self, list[Operation]()
        for index, bracket in enumerate(self.brackets):
            state, requested = state._with_bracket(index, bracket.initial(rng))
            operations += requested
        return state, operations

    def _with_bracket(
        self, index: int, step: tuple[AshaSearch, list[Operation]]
    ) -> tuple[Tournament, list[Operation]]:
        bracket, operations = step
        return Tournament((*self.brackets[:index], bracket, *self.brackets[index + 1 :])), operations

    def bracket_index(self, request_id: str) -> int:
        """Index of the bracket that a trial belongs to."""
        for index, bracket in enumerate(self.brackets):
            if request_id in bracket.rung_of:
                return index
        raise MethodError(f"trial {request_id} does not belong to this search")

    def trial_created(self, request_id: str) -> tuple[Tournament, list[Operation]]:
        index = self.bracket_index(request_id)
        return self._with_bracket(index, self.brackets[index].trial_created(request_id))

    def validation_completed(
        self, request_id: str, metric: Any, rng: Rng
    ) -> tuple[Tournament, list[Operation]]:
        index = self.bracket_index(request_id)
        return self._with_bracket(index, self.brackets[index].validation_completed(request_id, metric, rng))

    def exited_early(self, request_id: str, reason: str, rng: Rng) -> tuple[Tournament, list[Operation]]:
        index = self.bracket_index(request_id)
        return self._with_bracket(index, self.brackets[index].exited_early(request_id, reason, rng))

    def trial_closed(self, request_id: str, rng: Rng) -> tuple[Tournament, list[Operation]]:
        index = self.bracket_index(request_id)
        return self._with_bracket(index, self.brackets[index].trial_closed(request_id, rng))

    def progress(self, units: Table[float], finished: int) -> float:
        return sum(b.progress(units, finished) for b in self.brackets) / len(self.brackets)


def _create(settings: SearchSettings) -> Tournament:
    searcher, max_length = settings.searcher, settings.max_length
    divisor, max_trials = searcher["divisor"], searcher["max_trials"]
    rungs = bracket_rungs(searcher, max_length)
    trials = bracket_trials(max_trials, divisor, rungs)
    concurrent = bracket_concurrent(searcher["max_concurrent_trials"], divisor, trials)
    return Tournament(
        tuple(
            AshaSearch.bracket(
                settings.space,
                num_rungs=rungs[i],
                max_length=max_length,
                max_trials=trials[i],
                divisor=divisor,
                max_concurrent=concurrent[i],
                stop_once=searcher["stop_once"],
                smaller_is_better=settings.smaller_is_better,
            )
            for i in range(len(rungs))
        )
    )


METHOD = Declaration(Tournament, _create)


def rung_count(value: float, divisor: float) -> int:
    """How many times `divisor` goes into `value`, plus one.

    Uses doubles, so exact powers may be one short.
    """
    return int(math.log(value) / math.log(divisor)) + 1


def bracket_rungs(searcher: Mapping[str, Any], max_length: int) -> list[int]:
    """Number of rungs of each bracket, largest first."""
    if searcher["bracket_rungs"]:
        return sorted(searcher["bracket_rungs"], reverse=True)
    divisor = searcher["divisor"]
    most_rungs = min(
        searcher["max_rungs"], rung_count(max_length, divisor), rung_count(searcher["max_trials"], divisor)
    )
    if most_rungs > MAX_RUNGS:
        raise MethodError(
            f"brackets of up to {most_rungs} rungs are too high: lower max_rungs to {MAX_RUNGS} or less"
        )
    fewest_rungs = {"aggressive": most_rungs, "standard": (most_rungs - 1) // 2 + 1, "conservative": 1}[
        searcher["mode"]
    ]
    return list(range(most_rungs, fewest_rungs - 1, -1))


def bracket_trials(max_trials: int, divisor: float, rungs: Sequence[int]) -> list[int]:
    """Number of trials of each bracket. The first one gets the remainder from rounding."""
    weights = [divisor ** (count - 1) / count for count in rungs]
    # At least one each, so with very few trials the brackets have more of them than were asked for, as in
    # 0.25.
    trials = [max(int(weight / sum(weights) * max_trials), 1) for weight in weights]
    trials[0] += max(max_trials - sum(trials), 0)
    return trials


def bracket_concurrent(max_concurrent: int, divisor: float, trials: Sequence[int]) -> list[int]:
    """How many trials of each bracket may run at once."""
    if max_concurrent == 0:
        return [max(trials[-1], int(divisor))] * len(trials)
    each, remainder = divmod(max(max_concurrent, len(trials)), len(trials))
    return [each + (1 if index < remainder else 0) for index in range(len(trials))]
