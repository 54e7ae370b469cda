"""Agents, which we call workers, their slots, and the pool they form (REST spec, section 7)."""

from __future__ import annotations

import hashlib
from typing import Any

from det_contracts.events.worker import Slot
from services.gateway.domain import Allocation, State, Worker
from services.gateway.present.values import instant

Container = dict[str, Any]
DEVICE_TYPES = {"cuda": "TYPE_CUDA", "cpu": "TYPE_CPU", "rocm": "TYPE_ROCM"}
POOL = "default"


def container_id(allocation_id: str, worker_id: str) -> str:
    """What stands for a container: an allocation's share of one worker. 32 hexadecimal digits."""
    return hashlib.sha256(f"{allocation_id}@{worker_id}".encode()).hexdigest()[:32]


def live_allocations(state: State) -> list[Allocation]:
    """What waits or runs, in the order it was asked for."""
    found = [state.allocations[id] for id in state.live]
    return sorted(found, key=lambda one: (one.requested_at, one.trial_id or 0, one.id))


def agents(state: State) -> list[dict[str, Any]]:
    """All workers that are here."""
    taken = _taken(state)
    return [_agent(worker, taken) for _, worker in sorted(state.workers.items())]


def _taken(state: State) -> dict[tuple[str, int], Allocation]:
    return {
        (part.worker_id, slot): one
        for one in live_allocations(state)
        for part in one.members
        for slot in part.slots
    }


def _agent(worker: Worker, taken: dict[tuple[str, int], Allocation]) -> dict[str, Any]:
    slots = {
        f"/agents/{worker.id}/slots/{slot.id}": _slot(worker, slot, taken.get((worker.id, slot.id)))
        for slot in worker.slots
    }
    containers = [slot["container"] for slot in slots.values() if slot["container"] is not None]
    return {
        "id": worker.id,
        "registeredTime": instant(worker.registered_at),
        "slots": slots,
        "containers": {container["id"]: container for container in containers},
        "label": "",
        "resourcePools": [worker.pool],
        "addresses": [worker.address] if worker.address else [],
        "enabled": True,
        "draining": False,
        "version": worker.version,
    }


def _slot(worker: Worker, slot: Slot, user: Allocation | None) -> dict[str, Any]:
    return {
        "id": str(slot.id),
        "device": _device(slot),
        "enabled": True,
        "container": _container(user, worker) if user is not None else None,
        "draining": False,
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


def pool(state: State) -> dict[str, Any]:
    """The one resource pool."""
    slots = [slot for worker in state.workers.values() for slot in worker.slots]
    here = state.workers.keys()
    parts = [part for one in live_allocations(state) for part in one.members if part.worker_id in here]
    kinds = {DEVICE_TYPES.get(slot.kind, "TYPE_UNSPECIFIED") for slot in slots}
    most = max((len(worker.slots) for worker in state.workers.values()), default=0)
    return {
        "name": POOL,
        "description": "",
        "type": "RESOURCE_POOL_TYPE_STATIC",
        "numAgents": len(state.workers),
        "slotsAvailable": len(slots),
        "slotsUsed": sum(len(part.slots) for part in parts),
        "slotType": kinds.pop() if len(kinds) == 1 else "TYPE_UNSPECIFIED",
        "auxContainerCapacity": 100 * len(state.workers),
        "auxContainersRunning": sum(1 for part in parts if not part.slots),
        "defaultComputePool": True,
        "defaultAuxPool": True,
        "preemptible": True,
        "minAgents": 0,
        "maxAgents": 0,
        "auxContainerCapacityPerAgent": 100,
        "schedulerType": "SCHEDULER_TYPE_PRIORITY",
        "schedulerFittingPolicy": "FITTING_POLICY_BEST",
        **_NO_PROVISIONING,
        "slotsPerAgent": most,
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
    "details": {"aws": None, "gcp": None, "priorityScheduler": None},
}
"""Fields of pools that grow and shrink by themselves: clients require them."""
