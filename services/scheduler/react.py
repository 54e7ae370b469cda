"""The scheduler's rules: which events its state calls for.

For an allocation: ask it to exit, kill it, or declare it over. For a pool: run one pass over the queue, and
decide which workers to request or give back.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice
from typing import Any

from det_contracts.events import scheduler
from services.scheduler import retention
from services.scheduler.domain import State
from services.scheduler.growth import scale_pool
from services.scheduler.passes import AT_ONCE, decide_pool, decision_events
from services.scheduler.steps import next_step


def react(state: State, key: tuple[str, Any]) -> Sequence[Any]:
    """Return the events that a record calls for; empty if there is nothing to do."""
    kind, id = key
    if kind == "pools" and id in state.pools:
        decision = decide_pool(state, id)
        return [*decision_events(state, id, decision), *scale_pool(state, id, decision)]
    if kind == "allocations" and id in state.allocations:
        return next_step(state, state.allocations[id])
    return ()


def due(state: State) -> float | None:
    """The earliest due time that has not been recorded as passed."""
    waits = (state.due, state.pauses_due, state.provisioned_due, state.retries_due)
    firsts = (one.first() for one in waits)
    times = [first[0] for first in firsts if first is not None]
    return min([*times, *retention.next_expiries(state)], default=None)


def expire(state: State, now: float) -> Sequence[Any]:
    """Return facts about due times that have come, earliest first within each kind.

    At most `AT_ONCE` facts are returned; a later call returns the rest.
    """
    late = (scheduler.DeadlinePassed(id, due_at) for due_at, id in state.due.up_to(now))
    silent = (scheduler.PauseOver(trial_id, due_at) for due_at, trial_id in state.pauses_due.up_to(now))
    workers = (scheduler.WorkerTimePassed(id, due_at) for due_at, id in state.provisioned_due.up_to(now))
    retries = (scheduler.RetryDue(pool, due_at) for due_at, pool in state.retries_due.up_to(now))
    facts = chain(late, silent, workers, retries, retention.expired_records(state, now))
    return list(islice(facts, AT_ONCE))
