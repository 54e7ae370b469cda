"""The job queue (REST spec, section 7): one job for each experiment that wants or has slots."""

from __future__ import annotations

from typing import Any

from det_contracts import ids
from services.gateway.domain import Allocation, Experiment, State
from services.gateway.present.agent import POOL, live_allocations
from services.gateway.present.values import instant
from services.gateway.users import USERS


def jobs(state: State) -> list[dict[str, Any]]:
    """All jobs, first in line first."""
    wanted: dict[int, list[Allocation]] = {}
    for one in live_allocations(state):
        if one.kind == "TRIAL":
            wanted.setdefault(one.experiment_id, []).append(one)

    def place(id: int) -> tuple[int, float, int]:
        return wanted[id][0].priority, state.experiments[id].created_at, id

    order = sorted(wanted, key=place)
    return [_job(state.experiments[id], wanted[id], ahead) for ahead, id in enumerate(order)]


def summary(state: State, experiment_id: int) -> dict[str, Any] | None:
    """State and place of one experiment's job; None when it has none."""
    id = ids.job_id(experiment_id)
    found = next((job for job in jobs(state) if job["jobId"] == id), None)
    return found["summary"] if found else None


def stats(state: State) -> dict[str, Any]:
    """How many jobs wait and run in the pool."""
    states = [job["summary"]["state"] for job in jobs(state)]
    queued = states.count("STATE_QUEUED")
    return {
        "resourcePool": POOL,
        "stats": {"queuedCount": queued, "scheduledCount": len(states) - queued},
        "aggregates": [],
    }


def _job(experiment: Experiment, wanted: list[Allocation], ahead: int) -> dict[str, Any]:
    held = [one for one in wanted if one.members]
    user = USERS.get(experiment.user)
    return {
        "summary": {"state": "STATE_SCHEDULED" if held else "STATE_QUEUED", "jobsAhead": ahead},
        "type": "TYPE_EXPERIMENT",
        "submissionTime": instant(experiment.created_at),
        "username": experiment.user,
        "userId": user.id if user else None,
        "resourcePool": experiment.pool,
        "isPreemptible": True,
        "priority": wanted[0].priority,
        "weight": 1,
        "entityId": str(experiment.id),
        "jobId": ids.job_id(experiment.id),
        "requestedSlots": sum(one.slots for one in wanted),
        "allocatedSlots": sum(one.slots for one in held),
        "name": experiment.name,
        "progress": 0,
        "workspaceId": 1,
    }
