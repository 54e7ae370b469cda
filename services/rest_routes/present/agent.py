"""Agents (our workers), their slots, and resource pools (REST spec, section 7)."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts.events.worker import Slot
from det_contracts.ids import container_id
from services.catalogue.api_values import format_time
from services.catalogue.domain import Allocation, State, Switch, Worker
from services.catalogue.peers import PoolRow

Container = dict[str, Any]
DEVICE_TYPES = {"cuda": "TYPE_CUDA", "cpu": "TYPE_CPU", "rocm": "TYPE_ROCM"}


def live_allocations(state: State) -> list[Allocation]:
    """Waiting and running allocations, in the order they were requested."""
    allocations = [state.allocations[id] for id in state.live]
    return sorted(
        allocations, key=lambda allocation: (allocation.requested_at, allocation.trial_id or 0, allocation.id)
    )


def agents(state: State) -> list[dict[str, Any]]:
    """All connected workers."""
    slot_holders = _slot_holders(state)
    return [_agent(worker, slot_holders) for _, worker in sorted(state.workers.items())]


def _slot_holders(state: State) -> dict[tuple[str, int], Allocation]:
    return {
        (part.worker_id, slot): allocation
        for allocation in live_allocations(state)
        for part in allocation.members
        for slot in part.slots
    }


def _agent(worker: Worker, slot_holders: dict[tuple[str, int], Allocation]) -> dict[str, Any]:
    slots = {
        f"/agents/{worker.id}/slots/{slot.id}": _slot(worker, slot, slot_holders.get((worker.id, slot.id)))
        for slot in worker.slots
    }
    containers = [slot["container"] for slot in slots.values() if slot["container"] is not None]
    return {
        "id": worker.id,
        "registeredTime": format_time(worker.registered_at),
        "slots": slots,
        "containers": {container["id"]: container for container in containers},
        "label": "",
        "resourcePools": [worker.pool],
        "addresses": [worker.address] if worker.address else [],
        "enabled": worker.switch.enabled,
        "draining": worker.switch.draining,
        "version": worker.version,
        "launcher": worker.launcher,
        "runLimits": [msgspec.to_builtins(limit) for limit in worker.limits],
    }


def _slot(worker: Worker, slot: Slot, holder: Allocation | None) -> dict[str, Any]:
    switch = worker.slot_switches.get(slot.id, Switch())
    return {
        "id": str(slot.id),
        "device": _device(slot),
        "enabled": switch.enabled and worker.switch.enabled,
        "container": _container(holder, worker) if holder is not None else None,
        "draining": switch.draining or worker.switch.draining,
    }


def _device(slot: Slot) -> dict[str, Any]:
    kind = DEVICE_TYPES.get(slot.kind, "TYPE_UNSPECIFIED")
    return {"id": slot.id, "brand": slot.brand, "uuid": slot.uuid, "type": kind}


def _container(allocation: Allocation, worker: Worker) -> Container:
    mine = {slot for part in allocation.members if part.worker_id == worker.id for slot in part.slots}
    return {
        "parent": f"/agents/{worker.id}",
        "id": container_id(allocation.id, worker.id),
        "state": "STATE_RUNNING" if allocation.started_at is not None else "STATE_ASSIGNED",
        "devices": [_device(slot) for slot in worker.slots if slot.id in mine],
    }


def pool(row: PoolRow, state: State, *, default: bool) -> dict[str, Any]:
    """A resource pool, from the scheduler's description of it."""
    workers = [worker for worker in state.workers.values() if worker.pool == row.name]
    kinds = {DEVICE_TYPES.get(slot.kind, "TYPE_UNSPECIFIED") for worker in workers for slot in worker.slots}
    settings = row.settings
    priority = {"preemption": settings.preemption, "defaultPriority": settings.default_priority}
    return {
        "name": row.name,
        "description": row.description,
        "type": "RESOURCE_POOL_TYPE_STATIC",
        "numAgents": row.workers,
        "slotsAvailable": row.slots,
        "slotsUsed": row.slots_used,
        "slotType": kinds.pop() if len(kinds) == 1 else "TYPE_UNSPECIFIED",
        "auxContainerCapacity": settings.max_aux_containers_per_agent * row.workers,
        "auxContainersRunning": row.aux_used,
        "defaultComputePool": default,
        "defaultAuxPool": default,
        "preemptible": True,
        "minAgents": 0,
        "maxAgents": 0,
        "auxContainerCapacityPerAgent": settings.max_aux_containers_per_agent,
        "schedulerType": f"SCHEDULER_TYPE_{settings.scheduler.upper()}",
        "schedulerFittingPolicy": f"FITTING_POLICY_{settings.fitting_policy.upper()}",
        **_NO_PROVISIONING,
        "details": {
            "aws": None,
            "gcp": None,
            "priorityScheduler": priority if settings.scheduler == "priority" else None,
        },
        "slotsPerAgent": max((len(worker.slots) for worker in workers), default=0),
    }


_NO_PROVISIONING: dict[str, Any] = {
    **dict.fromkeys(
        (
            "location",
            "imageId",
            "instanceType",
            "accelerator",
            "agentDockerImage",
            "agentDockerNetwork",
            "agentDockerRuntime",
            "agentFluentImage",
            "containerStartupScript",
            "startupScript",
            "masterCertName",
            "masterUrl",
        ),
        "",
    ),
    **dict.fromkeys(("maxIdleAgentPeriod", "maxAgentStartingPeriod"), 0),
}
"""Fields of autoscaling pools, which clients require."""
