"""The scheduler's rules: which events its state calls for.

For an allocation: ask it to exit, kill it, or declare it over. For a pool: run one pass over the queue, and
decide which workers to request or give back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from det_contracts.events import scheduler
from services.kit.rules import TimerKind
from services.scheduler import retention
from services.scheduler.domain import State
from services.scheduler.growth import scale_pool
from services.scheduler.passes import decide_pool, decision_events
from services.scheduler.steps import next_step


def react(state: State, key: tuple[str, Any]) -> Sequence[Any]:
    """Return the events that a record calls for; empty if there is nothing to do."""
    kind, id = key
    if kind == "pools" and id in state.pools:
        # Placing and giving workers back follow from one decision, so that nothing is placed on a worker
        # that goes (decision 55).
        decision = decide_pool(state, id)
        return [*decision_events(state, id, decision), *scale_pool(state, id, decision)]
    if kind == "allocations" and id in state.allocations:
        return next_step(state, state.allocations[id])
    return ()


TIMERS = {
    "deadlines": TimerKind(
        lambda state: state.due, lambda _, due_at, id: scheduler.DeadlinePassed(id, due_at)
    ),
    "pauses": TimerKind(
        lambda state: state.pauses_due, lambda _, due_at, trial_id: scheduler.PauseOver(trial_id, due_at)
    ),
    "provisioned": TimerKind(
        lambda state: state.provisioned_due, lambda _, due_at, id: scheduler.WorkerTimePassed(id, due_at)
    ),
    "supplies": TimerKind(
        lambda state: state.retries_due, lambda _, due_at, pool: scheduler.RetryDue(pool, due_at)
    ),
    "tasks": TimerKind(retention.tasks_to_forget, retention.forget_task),
    "workers": TimerKind(retention.workers_to_forget, retention.forget_worker),
}
