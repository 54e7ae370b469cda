"""Tasks and their allocations (REST spec, section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from det_contracts.ids import container_id
from services.catalogue.api_values import format_optional_time, format_time
from services.catalogue.domain import Allocation, State
from services.catalogue.peers import QueueOrder
from services.rest_routes.present.agent import live_allocations

KINDS = {"COMMAND": "Command", "TENSORBOARD": "TensorBoard", "NOTEBOOK": "Notebook", "SHELL": "Shell"}
SHOWN_STATES = {"PENDING": "QUEUED", "ASSIGNED": "QUEUED"}


def summaries(state: State, ranks: QueueOrder) -> dict[str, dict[str, Any]]:
    """Live allocations by id."""
    return {allocation.id: _summary(allocation, ranks) for allocation in live_allocations(state)}


def raw_summaries(state: State, ranks: QueueOrder) -> dict[str, dict[str, Any]]:
    """Live allocations in the older form, for routes outside `/api/v1`."""
    return {allocation.id: _raw_summary(allocation, ranks) for allocation in live_allocations(state)}


def task_name(allocation: Allocation) -> str:
    """The task's name in lists and log lines."""
    if allocation.trial_id is not None:
        return f"Trial {allocation.trial_id} (Experiment {allocation.experiment_id})"
    if allocation.kind != "CHECKPOINT_GC":
        return f"{KINDS[allocation.kind]} {allocation.task_id}"
    return f"Checkpoint GC (Experiment {allocation.experiment_id})"


def container_locations(containers: Sequence[str], runs: Sequence[Allocation]) -> list[tuple[str, str]]:
    """The allocation and worker of each of these containers that belongs to one of these runs."""
    places = [(run.id, part.worker_id) for run in runs for part in run.members]
    return [place for place in places if container_id(*place) in containers]


def _summary(allocation: Allocation, ranks: QueueOrder) -> dict[str, Any]:
    return {
        "taskId": allocation.task_id,
        "allocationId": allocation.id,
        "name": task_name(allocation),
        "registeredTime": format_time(allocation.requested_at),
        "resourcePool": allocation.pool,
        "slotsNeeded": allocation.slots,
        "resources": [
            {
                "resourcesId": container_id(allocation.id, part.worker_id),
                "containerId": container_id(allocation.id, part.worker_id),
                "allocationId": allocation.id,
                "agentDevices": {part.worker_id: {"devices": [{"id": slot} for slot in part.slots]}},
            }
            for part in allocation.members
        ],
        "schedulerType": ranks.schedulers.get(allocation.pool, ""),
        "priority": ranks.priorities.get(allocation.experiment_id, allocation.priority),
        "proxyPorts": [],
    }


def _raw_summary(allocation: Allocation, ranks: QueueOrder) -> dict[str, Any]:
    return {
        "task_id": allocation.task_id,
        "allocation_id": allocation.id,
        "name": task_name(allocation),
        "registered_time": format_time(allocation.requested_at),
        "resource_pool": allocation.pool,
        "slots_needed": allocation.slots,
        "resources": [
            {
                "container_id": container_id(allocation.id, part.worker_id),
                "allocation_id": allocation.id,
                "agent_devices": {part.worker_id: [{"id": slot} for slot in part.slots]},
            }
            for part in allocation.members
        ],
        "scheduler_type": ranks.schedulers.get(allocation.pool, ""),
        "priority": ranks.priorities.get(allocation.experiment_id, allocation.priority),
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
        "allocations": [_run(run, state) for run in runs],
        "startTime": format_time(trial.created_at if trial is not None else first.requested_at),
        "endTime": format_optional_time(ended),
    }


def _is_ready(run: Allocation, state: State) -> bool:
    """Whether a run is ready. A task served through the proxy is ready only once it responds there."""
    own_task = state.tasks.get(run.task_id)
    answers = own_task is None or own_task.kind == "COMMAND" or bool(own_task.address)
    return answers and run.started_at is not None and run.ended_at is None


def _run(run: Allocation, state: State) -> dict[str, Any]:
    return {
        "taskId": run.task_id,
        "state": f"STATE_{SHOWN_STATES.get(run.state, run.state)}",
        "isReady": _is_ready(run, state),
        "startTime": format_optional_time(run.started_at),
        "endTime": format_optional_time(run.ended_at),
        "allocationId": run.id,
        "agentIds": [part.worker_id for part in run.members],
        "reason": run.reason,
    }
