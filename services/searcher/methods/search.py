"""The wrapper around every method, with the state and the end of a search (searchers spec, 1.3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from services.searcher.methods.choose import AnyMethod, choose, newest_version
from services.searcher.methods.custom import CustomSearch
from services.searcher.methods.protocol import (
    INVALID_HP_REASONS,
    WORST_METRIC,
    Create,
    Event,
    MethodError,
    Operation,
    Proposal,
    Shutdown,
    TrialClosed,
    TrialCreated,
    TrialExitedEarly,
    TrialProgress,
    ValidationCompleted,
)
from services.searcher.methods.rng import Rng, RngState
from services.searcher.methods.table import Table
from services.searcher.methods.tpe import TpeSearch

NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
NOTHING: Mapping[str, float] = {}
replace = msgspec.structs.replace


class Search(msgspec.Struct, frozen=True):
    """A search at one point of its history. Equal histories give equal searches.

    Nothing in it is modified in place, so earlier states remain valid.
    """

    method: AnyMethod
    rng: RngState
    smaller_is_better: bool
    requested: int = 0
    """Number of trials requested."""
    units: Table[float] = Table()
    """Units trained by each open trial, as reported; excludes trials with invalid hyperparameters."""
    finished: int = 0
    """Number of trials that are over, without those with invalid hyperparameters."""
    closed: Table[bool] = Table()
    exited: Table[str] = Table()
    """Trials that exited early, and why."""
    shutdown: bool = False


Step = tuple[Search, tuple[Operation, ...]]


def start(
    searcher: Mapping[str, Any], hyperparameters: Mapping[str, Any], seed: int, version: int | None = None
) -> Step:
    """Begin a search. `searcher` and `hyperparameters` come from a completed configuration.

    `version` is that of the method if the search began earlier; the default is the newest. Raises
    `MethodError` for a configuration that cannot be searched, and `UnknownVersion` for a version of a later
    release.
    """
    rng = Rng.seeded(seed)
    smaller_is_better = bool(searcher.get("smaller_is_better", True))
    try:
        unstarted = choose(
            searcher, dict(hyperparameters), smaller_is_better, version or newest_version(searcher)
        )
        method, operations = unstarted.initial(rng)
    except OverflowError:
        raise MethodError("divisor and rungs go beyond what a double can hold: lower one of them") from None
    return _with_operations(Search(method, rng.state(), smaller_is_better), (method, operations), rng)


def step(search: Search, event: Event) -> Step:
    """Return the search after one event. `search` itself is not changed.

    A repeated event (a trial's creation, early exit or end) has no effect. Raises `MethodError` for a metric
    that the method cannot rank, and for an unknown trial.
    """
    handle = _STEPS.get(type(event))
    if handle is None:
        raise MethodError(f"a search does not accept {event!r}")
    id = event.request_id
    if handle is not _created and not _is_announced(search, id):
        raise MethodError(f"trial {id} was not announced to this search")
    after, operations = handle(search, event, Rng(search.rng))
    # A repeated event changed nothing and is not shown again: the user's method answers each one once.
    if isinstance(after.method, CustomSearch) and after is not search:
        after = replace(after, method=after.method.enqueue(event))
    return after, operations


def _is_announced(search: Search, id: str) -> bool:
    return id in search.units or id in search.closed or id in search.exited


def _created(search: Search, event: TrialCreated, rng: Rng) -> Step:
    id = event.request_id
    if _is_announced(search, id):
        return search, ()
    method = search.method
    if isinstance(method, TpeSearch):
        method = method.with_point(id, event.hparams)
    updated = replace(search, units=search.units.put(id, 0.0))
    return _with_operations(updated, method.trial_created(id), rng)


def _progressed(search: Search, event: TrialProgress, rng: Rng) -> Step:
    # Progress is only shown, so a script's nonsense is no reason to fail its search.
    if event.request_id not in search.units or not math.isfinite(event.units):
        return search, ()
    return replace(search, units=search.units.put(event.request_id, float(event.units))), ()


def _completed(search: Search, event: ValidationCompleted, rng: Rng) -> Step:
    compares = search.method.compares_trials
    metric = rankable(event.metric, search.smaller_is_better) if compares else event.metric
    return _with_operations(search, search.method.validation_completed(event.request_id, metric, rng), rng)


def _exited(search: Search, event: TrialExitedEarly, rng: Rng) -> Step:
    id, reason = event.request_id, event.reason
    if id in search.exited or id in search.closed:
        return search, ()
    units = search.units.drop(id) if reason in INVALID_HP_REASONS else search.units
    updated = replace(search, exited=search.exited.put(id, reason), units=units)
    # Not closing: the end of the same trial follows, and only ends can make it a cancellation (spec 1.3).
    return _shut_down_if_closed(
        *_with_operations(updated, search.method.exited_early(id, reason, rng), rng), closing=False
    )


def _closed(search: Search, event: TrialClosed, rng: Rng) -> Step:
    id = event.request_id
    if id in search.closed:
        return search, ()
    updated = replace(search, closed=search.closed.put(id, True))
    if id in search.units:
        updated = replace(updated, units=search.units.drop(id), finished=search.finished + 1)
    return _shut_down_if_closed(
        *_with_operations(updated, search.method.trial_closed(id, rng), rng), closing=True
    )


_STEPS: dict[type, Callable[[Search, Any, Rng], Step]] = {
    TrialCreated: _created,
    TrialProgress: _progressed,
    ValidationCompleted: _completed,
    TrialExitedEarly: _exited,
    TrialClosed: _closed,
}


def _with_operations(search: Search, method_step: tuple[AnyMethod, list[Operation]], rng: Rng) -> Step:
    method, operations = method_step
    requested = search.requested + sum([isinstance(o, Create) for o in operations])
    after = replace(search, method=method, rng=rng.state(), requested=requested)
    return after, tuple(operations)


def _shut_down_if_closed(search: Search, operations: tuple[Operation, ...], *, closing: bool) -> Step:
    """Shut down once every requested trial is closed."""
    if isinstance(search.method, CustomSearch):
        return search, operations
    # After the operations of this step are counted, so that a replacement which it asked for keeps the search
    # open.
    if search.shutdown or search.requested != len(search.closed):
        return search, operations
    reasons = list(search.exited.values())
    failure = reasons.count("ERRORED") >= search.requested
    cancel = closing and reasons.count("USER_CANCELED") >= search.requested
    return replace(search, shutdown=True), (*operations, Shutdown(cancel, failure))


def rankable(metric: Any, smaller_is_better: bool) -> float:
    """Convert a metric to a number that can be ordered (searchers spec, section 7).

    NaN becomes the worst finite value for the direction, an infinity the nearest finite value. All three may
    be given as text. Raises `MethodError` for anything that is not a number.
    """
    value = NON_FINITE.get(metric, metric) if isinstance(metric, str) else metric
    # `bool` is a subclass of `int`.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MethodError(f"the searcher metric must be a number, not {metric!r}")
    if value != value:
        return WORST_METRIC if smaller_is_better else -WORST_METRIC
    return float(max(-WORST_METRIC, min(WORST_METRIC, value)))


def propose(search: Search, seed: int, drawn: dict[str, Any]) -> Proposal:
    """The hyperparameters to announce a trial with, given its seed and those it was created with.

    The announced ones come back in `TrialCreated` and count from then on, so a replay of the log makes no
    proposals.
    """
    if isinstance(search.method, TpeSearch):
        return search.method.proposal(seed, drawn)
    return Proposal(drawn, "the search method asked for a trial")


def progress(search: Search, trained: Mapping[str, float] = NOTHING) -> float:
    """Progress of the search, 0 to 1.

    `trained` has the units of open trials as others count them; it counts where a script reported none.
    """
    units = search.units
    for request_id, length in trained.items():
        if request_id in units and not units[request_id]:
            units = units.put(request_id, length)
    value = search.method.progress(units, search.finished)
    # Scripts report what they like, also what lies before their start or beyond their end.
    return min(max(value, 0.0), 1.0) if math.isfinite(value) else 0.0
