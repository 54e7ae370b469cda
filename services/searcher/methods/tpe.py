"""Trials at points that a tree-structured Parzen estimator proposes from earlier results.

After "Algorithms for Hyper-Parameter Optimization" (Bergstra et al., 2011). Another method decides how many
trials there are and how far each trains; this one decides their hyperparameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from services.searcher.methods import optuna_sampler
from services.searcher.methods.adaptive_asha import rung_count
from services.searcher.methods.asha import AshaSearch
from services.searcher.methods.optuna_sampler import Point
from services.searcher.methods.protocol import Declaration, MethodError, Operation, Proposal, SearchSettings
from services.searcher.methods.random import RandomSearch
from services.searcher.methods.rng import Rng
from services.searcher.methods.rungs import MAX_RUNGS
from services.searcher.methods.table import Table

MAX_POINTS = 500
"""Maximum number of points that a proposal uses, since its cost grows with each."""
FAILURE_REASONS = ("ERRORED", "INVALID_HP", "INIT_INVALID_HP")
"""Reasons for early exits that count against a point."""


class TpeSearch(msgspec.Struct, frozen=True, tag="tpe"):
    """A method whose trials get the estimator's proposal when they are announced.

    The state does not need Optuna: points come from the log, and proposals are made when trials are
    announced.
    """

    compares_trials: ClassVar[bool] = True
    inner: RandomSearch | AshaSearch
    max_length: int
    startup: int
    """Number of results to wait for before using the estimator."""
    smaller_is_better: bool
    points: Table[Point] = Table()
    results: int = 0
    """Number of points that have a value."""
    numbered: Table[str] = Table()
    """The trial of each point, by the point's number."""

    def initial(self, rng: Rng) -> tuple[TpeSearch, list[Operation]]:
        return self._with_inner(self.inner.initial(rng))

    def with_point(self, request_id: str, hparams: dict[str, Any]) -> TpeSearch:
        """A trial was announced at a point."""
        number = len(self.points)
        return msgspec.structs.replace(
            self,
            points=self.points.put(request_id, Point(number, hparams)),
            numbered=self.numbered.put(str(number), request_id),
        )

    def proposal(self, seed: int, drawn: dict[str, Any]) -> Proposal:
        """The point of the next trial. `drawn` is a random point, used while too few results are known."""
        if self.results < self.startup:
            why = f"drawn at random: {self.results} of the first {self.startup} results are there"
            return Proposal(drawn, why)
        count = len(self.points)
        points = [self.points[self.numbered[str(n)]] for n in range(max(0, count - MAX_POINTS), count)]
        try:
            hparams = optuna_sampler.propose(self.inner.space, points, self.max_length, seed)
        except Exception as error:
            # One search must not stop the service that runs all of them.
            return Proposal(drawn, f"drawn at random, because optuna could not propose: {error!r}")
        return Proposal(hparams, f"proposed by TPE from {self.results} results")

    def trial_created(self, request_id: str) -> tuple[TpeSearch, list[Operation]]:
        return self._with_inner(self.inner.trial_created(request_id))

    def validation_completed(
        self, request_id: str, metric: Any, rng: Rng
    ) -> tuple[TpeSearch, list[Operation]]:
        point = self.points[request_id]
        value = metric if self.smaller_is_better else -metric
        updated = msgspec.structs.replace(
            self,
            points=self.points.put(
                request_id, msgspec.structs.replace(point, value=value, length=self._length(request_id))
            ),
            results=self.results + (point.value is None),
        )
        return updated._with_inner(self.inner.validation_completed(request_id, metric, rng))

    def exited_early(self, request_id: str, reason: str, rng: Rng) -> tuple[TpeSearch, list[Operation]]:
        point, updated = self.points[request_id], self
        if point.value is None:
            # Numbers are never reused, so the point is emptied rather than dropped.
            failed = msgspec.structs.replace(point, failed=True)
            # A person who stops a trial says nothing about its hyperparameters.
            emptied = failed if reason in FAILURE_REASONS else msgspec.structs.replace(failed, hparams={})
            updated = msgspec.structs.replace(self, points=self.points.put(request_id, emptied))
        return updated._with_inner(self.inner.exited_early(request_id, reason, rng))

    def trial_closed(self, request_id: str, rng: Rng) -> tuple[TpeSearch, list[Operation]]:
        return self._with_inner(self.inner.trial_closed(request_id, rng))

    def progress(self, units: Table[float], finished: int) -> float:
        return self.inner.progress(units, finished)

    def _with_inner(
        self, step: tuple[RandomSearch, list[Operation]] | tuple[AshaSearch, list[Operation]]
    ) -> tuple[TpeSearch, list[Operation]]:
        return msgspec.structs.replace(self, inner=step[0]), step[1]

    def _length(self, request_id: str) -> int:
        """The length that a trial was last asked to train to."""
        if isinstance(self.inner, RandomSearch):
            return self.max_length
        return self.inner.rungs[self.inner.rung_of[request_id]].length


def _create(settings: SearchSettings) -> TpeSearch:
    searcher, max_length = settings.searcher, settings.max_length
    limits = searcher["max_trials"], searcher["max_concurrent_trials"]
    rungs = searcher.get("rungs")
    inner: RandomSearch | AshaSearch
    if rungs is None:
        inner = RandomSearch(settings.space, max_length, *limits, replaces_invalid=True)
    else:
        inner = AshaSearch.bracket(
            settings.space,
            num_rungs=_rung_count(rungs, max_length, limits[0]),
            max_length=max_length,
            max_trials=limits[0],
            divisor=rungs["divisor"],
            max_concurrent=limits[1],
            stop_once=rungs["stop_once"],
            smaller_is_better=settings.smaller_is_better,
        )
    return TpeSearch(inner, max_length, searcher["num_startup_trials"], settings.smaller_is_better)


def _rung_count(rungs: Mapping[str, Any], max_length: int, max_trials: int) -> int:
    """As many rungs as the length and the number of trials allow."""
    divisor = rungs["divisor"]
    rung_limit: int = min(
        rungs["max_rungs"], rung_count(max_length, divisor), rung_count(max_trials, divisor)
    )
    if rung_limit > MAX_RUNGS:
        raise MethodError(f"{rung_limit} rungs are too many: lower max_rungs to {MAX_RUNGS} or less")
    return rung_limit


def _unavailable_reason() -> str:
    return "" if optuna_sampler.is_installed() else optuna_sampler.NOT_INSTALLED


METHOD = Declaration(TpeSearch, _create, unavailable_reason=_unavailable_reason)
