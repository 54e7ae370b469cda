"""The wrapper around every method: what all searches keep, when one is over (searchers spec, 1.3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from services.searcher.methods.adaptive_asha import Tournament, adaptive_asha
from services.searcher.methods.asha import AshaSearch
from services.searcher.methods.grid import GridSearch
from services.searcher.methods.protocol import (
    INVALID,
    WORST,
    Create,
    Event,
    MethodError,
    Operation,
    Shutdown,
    TrialClosed,
    TrialCreated,
    TrialExitedEarly,
    TrialProgress,
    ValidationCompleted,
)
from services.searcher.methods.random import RandomSearch
from services.searcher.methods.rng import Rng, RngState

AnyMethod = RandomSearch | GridSearch | AshaSearch | Tournament
SPELLED = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class Search(msgspec.Struct, frozen=True):
    """A search at one point of its history; equal histories give equal searches."""

    method: AnyMethod
    rng: RngState
    smaller_is_better: bool
    requested: int = 0
    """Trials asked for."""
    units: dict[str, float] = {}
    """Units trained by each announced trial, as far as it told."""
    closed: dict[str, bool] = {}
    exited: dict[str, str] = {}
    """Trials that exited early, and why."""
    shutdown: bool = False


def start(
    searcher: Mapping[str, Any], hyperparameters: Mapping[str, Any], seed: int
) -> tuple[Search, tuple[Operation, ...]]:
    """Begin a search; `searcher` and `hyperparameters` are those of a completed configuration.

    Raises `MethodError` for what cannot be searched.
    """
    rng = Rng.seeded(seed)
    better = bool(searcher.get("smaller_is_better", True))
    method, operations = _method(searcher, dict(hyperparameters), better).initial(rng)
    search = Search(method, rng.state(), better)
    return _asked(search, method, rng, operations)


def _method(searcher: Mapping[str, Any], space: dict[str, Any], better: bool) -> AnyMethod:
    name = searcher["name"]
    if name == "custom":
        raise MethodError("the 'custom' searcher is not supported yet")
    length = length_of(searcher["max_length"])
    match name:
        case "single":
            return RandomSearch(space, length, 1, 1, False)
        case "random":
            limits = searcher["max_trials"], searcher["max_concurrent_trials"]
            return RandomSearch(space, length, *limits, True)
        case "grid":
            return GridSearch.over(space, length, searcher["max_concurrent_trials"])
        case "async_halving":
            return AshaSearch.bracket(
                space,
                num_rungs=searcher["num_rungs"],
                max_length=length,
                max_trials=searcher["max_trials"],
                divisor=searcher["divisor"],
                max_concurrent=searcher["max_concurrent_trials"],
                stop_once=searcher["stop_once"],
                smaller_is_better=better,
            )
        case "adaptive_asha":
            return adaptive_asha(space, searcher, length, better)
        case _:
            raise MethodError(f"unknown searcher '{name}'")


def length_of(value: Any) -> int:
    """The count of a length, with or without a unit."""
    if isinstance(value, Mapping):
        value = next(count for count in value.values() if count is not None)
    length = int(value)
    if length < 1:
        raise MethodError(f"max_length must be at least 1, not {length}")
    return length


def step(search: Search, event: Event) -> tuple[Search, tuple[Operation, ...]]:
    """One event of the search. Raises `MethodError` for a metric that the method cannot rank."""
    rng = Rng(search.rng)
    method = search.method
    match event:
        case TrialCreated(id):
            told = msgspec.structs.replace(search, units=search.units | {id: 0.0})
            return _asked(told, *_ordered(method.trial_created(id), rng))
        case TrialProgress(id, units):
            known = search.units | {id: float(units)} if id in search.units else search.units
            return msgspec.structs.replace(search, units=known), ()
        case ValidationCompleted(id, metric):
            value = _rankable(metric, search) if not isinstance(method, RandomSearch | GridSearch) else metric
            return _asked(search, *_ordered(method.validation_completed(id, value, rng), rng))
        case TrialExitedEarly(id, reason):
            if id in search.exited:
                return search, ()
            kept = {k: v for k, v in search.units.items() if k != id} if reason in INVALID else search.units
            told = msgspec.structs.replace(search, exited=search.exited | {id: reason}, units=kept)
            return _end(_asked(told, *_ordered(method.exited_early(id, reason, rng), rng)), closing=False)
        case TrialClosed(id):
            told = msgspec.structs.replace(search, closed=search.closed | {id: True})
            return _end(_asked(told, *_ordered(method.trial_closed(id, rng), rng)), closing=True)
    raise MethodError(f"a search is not told of {event!r}")


def _ordered(step: tuple[AnyMethod, list[Operation]], rng: Rng) -> tuple[AnyMethod, Rng, list[Operation]]:
    return step[0], rng, step[1]


def _asked(
    search: Search, method: AnyMethod, rng: Rng, operations: list[Operation]
) -> tuple[Search, tuple[Operation, ...]]:
    requested = search.requested + sum(isinstance(o, Create) for o in operations)
    after = msgspec.structs.replace(search, method=method, rng=rng.state(), requested=requested)
    return after, tuple(operations)


def _end(
    stepped: tuple[Search, tuple[Operation, ...]], *, closing: bool
) -> tuple[Search, tuple[Operation, ...]]:
    """Shut down once every trial that was asked for is closed."""
    search, operations = stepped
    if search.shutdown or search.requested != len(search.closed):
        return stepped
    reasons = list(search.exited.values())
    failure = reasons.count("ERRORED") >= search.requested
    cancel = closing and reasons.count("USER_CANCELED") >= search.requested
    over = msgspec.structs.replace(search, shutdown=True)
    return over, (*operations, Shutdown(cancel, failure))


def _rankable(metric: Any, search: Search) -> float:
    """A metric that can be ordered; what is not finite becomes the worst or best finite value (section 7)."""
    value = SPELLED.get(metric, metric) if isinstance(metric, str) else metric
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MethodError(f"the searcher metric must be a number, not {metric!r}")
    worst = WORST if search.smaller_is_better else -WORST
    if math.isnan(value):
        return worst
    return max(-WORST, min(WORST, float(value)))


def progress(search: Search) -> float:
    """How far the search is, 0 to 1."""
    value = search.method.progress(search.units, frozenset(search.closed))
    return value if math.isfinite(value) else 0.0
