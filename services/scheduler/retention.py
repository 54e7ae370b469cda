"""When the scheduler forgets tasks that ended and workers that left long ago."""

from __future__ import annotations

from collections.abc import Iterator

from det_contracts.events.scheduler import TaskForgotten, WorkerForgotten
from services.scheduler.domain import State
from services.scheduler.domain.records import DAY_S, TASKS_KEPT_S


def tasks_to_forget(state: State) -> Iterator[tuple[float, str]]:
    """When each task that ended may be forgotten; what has been over longest comes first."""
    return ((ended_at + TASKS_KEPT_S, id) for ended_at, id in state.ended_tasks)


def forget_task(state: State, _: float, id: str) -> TaskForgotten:
    """The event that forgets a task."""
    return TaskForgotten(
        id, state.tasks[id].number, f"it ended more than {TASKS_KEPT_S / DAY_S:.0f} days ago"
    )


def workers_to_forget(state: State) -> Iterator[tuple[float, str]]:
    """When each worker that left may be forgotten, earliest first, without those whose slots a run holds."""
    # The end of such a run still names the worker, and looks it up.
    return ((until, id) for until, id in state.absent_workers if not state.occupancy.held_on(id))


def forget_worker(state: State, until: float, id: str) -> WorkerForgotten:
    """The event that forgets a worker."""
    days = (until - state.workers[id].gone_at) / DAY_S
    return WorkerForgotten(id, f"it has been away for more than {days:.0f} days")
