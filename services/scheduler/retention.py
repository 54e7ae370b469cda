"""When the scheduler forgets tasks that ended and workers that left long ago."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from det_contracts.events.scheduler import TaskForgotten, WorkerForgotten
from services.scheduler.domain import State
from services.scheduler.domain.records import DAY_S, TASKS_KEPT_S


def next_expiries(state: State) -> Iterable[float]:
    """When the next record of each kind may be forgotten."""
    for ended_at, _ in state.ended_tasks.scan():
        yield ended_at + TASKS_KEPT_S
        break
    for until, _ in _without_held(state.absent_workers.scan(), state):
        yield until
        break


def expired_records(state: State, now: float) -> Iterator[TaskForgotten | WorkerForgotten]:
    """Everything that may be forgotten by now; within each kind, what has been over longest comes first."""
    for _, id in state.ended_tasks.up_to(now - TASKS_KEPT_S):
        reason = f"it ended more than {TASKS_KEPT_S / DAY_S:.0f} days ago"
        yield TaskForgotten(id, state.tasks[id].number, reason)
    for until, id in _without_held(state.absent_workers.up_to(now), state):
        days = (until - state.workers[id].gone_at) / DAY_S
        yield WorkerForgotten(id, f"it has been away for more than {days:.0f} days")


def _without_held(found: Iterable[tuple[Any, ...]], state: State) -> Iterator[tuple[float, str]]:
    """Leave out workers on which a run still holds a part."""
    return ((until, id) for until, id in found if not state.occupancy.held_on(id))
