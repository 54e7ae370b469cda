"""Jobs that count towards quotas in addition to experiments (tasks), and moves of experiments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from det_contracts import ids
from det_contracts.events import gateway, scheduler
from services.kit.quotas.limits import account_of
from services.searcher.domain.state import OpenTask, State

Key = tuple[str, Any]


def task_submitted(state: State, event: scheduler.TaskSubmitted) -> Iterable[Key]:
    """Count one more job."""
    owner = ids.owner_of_task(event.number)
    state.open_tasks[event.task_id] = OpenTask(owner)
    state.open_jobs.set(owner, account_of(state, owner), 1)
    yield "open_tasks", event.task_id


def task_ended(state: State, event: scheduler.AllocationEnded) -> Iterable[Key]:
    """Count one job less: a task runs only once."""
    task_id = ids.task_of(event.allocation_id)
    task = state.open_tasks.pop(task_id, None)
    if task is not None:
        state.open_jobs.remove(task.owner)
        yield "open_tasks", task_id


def experiment_moved(state: State, event: gateway.ExperimentMoved) -> Iterable[Key]:
    """Another workspace's quota now counts the experiment."""
    experiment = state.experiments.get(event.experiment_id)
    if experiment is not None:
        state.update_open_jobs(experiment)
    return ()
