"""The job queue (REST spec, section 7), with one job per experiment or task that wants or has slots."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from det_contracts.ids import job_id
from services.catalogue.api_values import format_time
from services.catalogue.domain import OwnTask, State
from services.catalogue.peers import Job, PoolRow
from services.people import users
from services.rest_routes.present.workspace import project_location

NOTHING: Mapping[int, float] = {}


def jobs(
    rows: Iterable[Job],
    state: State,
    *,
    progress: Mapping[int, float] = NOTHING,
    starts: Mapping[int, float] = NOTHING,
    ends: Mapping[int, float] = NOTHING,
    never: Collection[int] = (),
) -> list[dict[str, Any]]:
    """Jobs of the queue. `waitsFor`, `canStart`, `startsIn` and `endsIn` (seconds) are our additions."""
    # Tasks without an experiment have jobs under their negated numbers.
    tasks = {-task.number: task for task in state.tasks.values()}
    return [
        _job(row, state, tasks.get(row.experiment_id), progress.get(row.experiment_id, 0.0))
        | {
            "canStart": row.experiment_id not in never,
            "startsIn": starts.get(row.experiment_id),
            "endsIn": ends.get(row.experiment_id),
        }
        for row in rows
    ]


def _job(row: Job, state: State, task: OwnTask | None, progress: float) -> dict[str, Any]:
    experiment = state.experiments.get(row.experiment_id)
    owner = experiment or task
    user = users.by_any_name(state, owner.user) if owner else None
    return {
        "summary": summary(row),
        "type": f"TYPE_{task.kind}" if task else "TYPE_EXPERIMENT",
        "submissionTime": format_time(row.submitted_at),
        "username": user.username if user else owner.user if owner else "",
        "userId": user.id if user else None,
        "resourcePool": row.pool,
        "isPreemptible": task is None,
        "priority": row.priority,
        "weight": row.weight,
        "entityId": task.id if task else str(row.experiment_id),
        "jobId": job_id(row.experiment_id),
        "requestedSlots": row.slots_requested,
        "allocatedSlots": row.slots_allocated,
        "name": owner.name if owner else "",
        "progress": progress,
        "workspaceId": task.workspace_id
        if task
        else project_location(state, experiment.project_id if experiment else 1)["workspaceId"],
        "waitsFor": row.waits_for,
    }


def summary(row: Job) -> dict[str, Any]:
    """A job's state and place in the queue."""
    return {"state": f"STATE_{row.state}", "jobsAhead": row.jobs_ahead}


def stats(pool: PoolRow) -> dict[str, int]:
    """The number of waiting jobs and of jobs with slots."""
    return {"queuedCount": pool.queued, "scheduledCount": pool.scheduled}
