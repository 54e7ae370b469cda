"""Tasks and their allocations (REST spec, section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from det_contracts.ids import container_id
from services.catalogue.api_values import instant, maybe_instant
from services.catalogue.domain import Allocation, State
from services.catalogue.peers import Ranks
from services.gateway.determined.present.agent import live_allocations

KINDS = {"COMMAND": "Command", "TENSORBOARD": "TensorBoard", "NOTEBOOK": "Notebook", "SHELL": "Shell"}
SHOWN = {"PENDING": "QUEUED", "ASSIGNED": "QUEUED"}


def summaries(state: State, ranks: Ranks) -> dict[str, dict[str, Any]]:
    """Live allocations by id."""
    return {one.id: _summary(one, ranks) for one in live_allocations(state)}


def raw_summaries(state: State, ranks: Ranks) -> dict[str, dict[str, Any]]:
    """Live allocations in the older form, for routes outside `/api/v1`."""
    return {one.id: _raw_summary(one, ranks) for one in live_allocations(state)}


def name(allocation: Allocation) -> str:
    """The task's name in lists and log lines."""
    if allocation.trial_id is not None:
        return f"Trial {allocation.trial_id} (Experiment {allocation.experiment_id})"
    if allocation.kind != "CHECKPOINT_GC":
        return f"{KINDS[allocation.kind]} {allocation.task_id}"
    return f"Checkpoint GC (Experiment {allocation.experiment_id})"


def places_of(containers: Sequence[str], runs: Sequence[Allocation]) -> list[tuple[str, str]]:
    """The allocation and worker of each of these containers that belongs to one of these runs."""
    places = [(one.id, part.worker_id) for one in runs for part in one.members]
    return [place for place in places if container_id(*place) in containers]


def _summary(one: Allocation, ranks: Ranks) -> dict[str, Any]:
    return {
        "taskId": one.task_id,
        "allocationId": one.id,
        "name": name(one),
        "registeredTime": instant(one.requested_at),
        "resourcePool": one.pool,
        "slotsNeeded": one.slots,
        "resources": [
            {
                "resourcesId": container_id(one.id, part.worker_id),
                "containerId": container_id(one.id, part.worker_id),
                "allocationId": one.id,
                "agentDevices": {part.worker_id: {"devices": [{"id": slot} for slot in part.slots]}},
            }
            for part in one.members
        ],
        "schedulerType": ranks.schedulers.get(one.pool, ""),
        "priority": ranks.priorities.get(one.experiment_id, one.priority),
        "proxyPorts": [],
    }


def _raw_summary(one: Allocation, ranks: Ranks) -> dict[str, Any]:
    return {
        "task_id": one.task_id,
        "allocation_id": one.id,
        "name": name(one),
        "registered_time": instant(one.requested_at),
        "resource_pool": one.pool,
        "slots_needed": one.slots,
        "resources": [
            {
                "container_id": container_id(one.id, part.worker_id),
                "allocation_id": one.id,
                "agent_devices": {part.worker_id: [{"id": slot} for slot in part.slots]},
            }
            for part in one.members
        ],
        "scheduler_type": ranks.schedulers.get(one.pool, ""),
        "priority": ranks.priorities.get(one.experiment_id, one.priority),
        "proxy_ports": [],
    }


def task(task_id: str, runs: list[Allocation], state: State) -> dict[str, Any]:
    """A task with all its runs; there is at least one."""
    first, last = runs[0], runs[-1]
    trial = state.trials.get(first.trial_id or 0)
    ended = trial.ended_at if trial is not None else last.ended_at
    return {
        "taskId": task_id,
        "taskType": f"TASK_TYPE_{first.kind}",
        "allocations": [_run(one, state) for one in runs],
        "startTime": instant(trial.created_at if trial is not None else first.requested_at),
        "endTime": maybe_instant(ended),
    }


def _is_ready(one: Allocation, state: State) -> bool:
    """Whether a run is ready. A task served through the proxy is ready only once it responds there."""
    known = state.tasks.get(one.task_id)
    answers = known is None or known.kind == "COMMAND" or bool(known.address)
    return answers and one.started_at is not None and one.ended_at is None


def _run(one: Allocation, state: State) -> dict[str, Any]:
    return {
        "taskId": one.task_id,
        "state": f"STATE_{SHOWN.get(one.state, one.state)}",
        "isReady": _is_ready(one, state),
        "startTime": maybe_instant(one.started_at),
        "endTime": maybe_instant(one.ended_at),
        "allocationId": one.id,
        "agentIds": [part.worker_id for part in one.members],
        "reason": one.reason,
    }
