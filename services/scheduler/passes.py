"""One pass over a pool's queue: the folded state as a snapshot, the policy's decision as events."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from det_contracts.events import scheduler
from det_contracts.ids import job_id
from services.scheduler.domain import Allocation, State, Worker
from services.scheduler.policy.explain import explain
from services.scheduler.policy.priority import decide
from services.scheduler.policy.snapshot import (
    Agent,
    Group,
    PoolSettings,
    Request,
    Running,
    Share,
    Snapshot,
)

SETTINGS = PoolSettings()


def one_pass(state: State, pool: str) -> Sequence[Any]:
    """Assignments that the present state allows; none when nothing waits or nothing fits."""
    if pool not in state.pools or not state.pools[pool].pending:
        return ()
    snapshot = snapshot_of(state, pool)
    free = {worker.id: _free_slots(state, worker) for worker in state.workers.values()}
    events = []
    for placement in decide(snapshot).allocate:
        allocation = state.allocations[placement.allocation_id]
        parts = tuple(_take(share, rank, free) for rank, share in enumerate(placement.shares))
        events.append(
            scheduler.AllocationAssigned(
                allocation_id=allocation.id,
                task_id=allocation.task_id,
                kind=allocation.kind,
                parts=parts,
                trial_id=allocation.trial_id,
                experiment_id=allocation.experiment_id,
                run=allocation.run,
                reason=_reason(allocation, parts),
            )
        )
    return events


def why_waiting(state: State, allocation_id: str) -> str:
    """One sentence: what a waiting allocation waits for."""
    snapshot = snapshot_of(state, state.allocations[allocation_id].pool)
    return explain(snapshot, decide(snapshot), allocation_id)


def snapshot_of(state: State, pool: str) -> Snapshot:
    """What a pass over one pool looks at."""
    workers = [w for w in state.workers.values() if w.pool == pool and w.presence == "here"]
    held = [a for a in state.allocations.values() if a.pool == pool and a.members]
    return Snapshot(
        agents=tuple(_agent(worker, held) for worker in workers),
        groups={str(a.experiment_id): Group(priority=a.priority) for a in state.allocations.values()},
        waiting=tuple(
            _request(state, state.allocations[id])
            for id in state.pools[pool].pending
            if not state.allocations[id].stop
        ),
        running=tuple(Running(_request(state, a), _shares(a)) for a in held),
        settings=SETTINGS,
    )


def _agent(worker: Worker, held: Sequence[Allocation]) -> Agent:
    members = [m for a in held for m in a.members if m.worker_id == worker.id]
    return Agent(
        id=worker.id,
        slots=len(worker.slots),
        slots_used=sum(len(m.slots) for m in members),
        zero_slot_used=sum(not m.slots for m in members),
    )


def _request(state: State, allocation: Allocation) -> Request:
    job = state.jobs.get(allocation.experiment_id)
    submitted_at = job.submitted_at if job else allocation.requested_at
    return Request(
        allocation_id=allocation.id,
        job_id=job_id(allocation.experiment_id),
        group=str(allocation.experiment_id),
        slots=allocation.slots,
        single_agent=allocation.kind != "TRIAL",
        position=Decimal(int(submitted_at * 1e6)),
        submitted_at=submitted_at,
        # The log's order is finer than its clock: requests of one batch have the same time.
        requested_at=float(allocation.requested),
    )


def _shares(allocation: Allocation) -> tuple[Share, ...]:
    return tuple(Share(m.worker_id, len(m.slots)) for m in allocation.members)


def _free_slots(state: State, worker: Worker) -> list[int]:
    taken = {
        slot
        for allocation in state.allocations.values()
        for member in allocation.members
        if member.worker_id == worker.id
        for slot in member.slots
    }
    return sorted(slot.id for slot in worker.slots if slot.id not in taken)


def _take(share: Share, rank: int, free: dict[str, list[int]]) -> scheduler.Part:
    slots, free[share.agent_id] = free[share.agent_id][: share.slots], free[share.agent_id][share.slots :]
    return scheduler.Part(share.agent_id, tuple(slots), rank)


def _reason(allocation: Allocation, parts: Sequence[scheduler.Part]) -> str:
    if not allocation.slots:
        return f"needs no slot; placed on {parts[0].worker_id}"
    where = ", ".join(f"{len(p.slots)} on {p.worker_id}" for p in parts)
    return (
        f"{allocation.slots} slots are free: {where}" if allocation.slots > 1 else f"a slot is free: {where}"
    )
