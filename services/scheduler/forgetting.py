"""When the scheduler forgets tasks that ended and workers that left long ago."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from det_contracts.events.scheduler import TaskForgotten, WorkerForgotten
from services.scheduler.domain import State
from services.scheduler.domain.records import DAY_S, TASKS_KEPT_S


def due(state: State) -> Iterable[float]:
    """When the next record of each kind may be forgotten."""
    for ended_at, _ in state.over.scan():
        yield ended_at + TASKS_KEPT_S
        break
    for until, _ in _away(state.away.scan(), state):
        yield until
        break


def forgotten(state: State, now: float) -> Iterator[TaskForgotten | WorkerForgotten]:
    """Everything that may be forgotten by now; within each kind, what has been over longest comes first."""
    for _, id in state.over.upto(now - TASKS_KEPT_S):
        reason = f"it ended more than {TASKS_KEPT_S / DAY_S:.0f} days ago"
        yield TaskForgotten(id, state.tasks[id].number, reason)
    for until, id in _away(state.away.upto(now), state):
        days = (until - state.workers[id].gone_at) / DAY_S
        yield WorkerForgotten(id, f"it has been away for more than {days:.0f} days")


def _away(found: Iterable[tuple[Any, ...]], state: State) -> Iterator[tuple[float, str]]:
    """Leave out workers on which a run still holds a part."""
    return ((until, id) for until, id in found if not state.places.held_on(id))
