"""Turns a policy's decision about one pool into events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from det_contracts.events import scheduler
from services.scheduler.domain import Allocation, State
from services.scheduler.policy.decide import decide
from services.scheduler.policy.records import Decision, Release, Share
from services.scheduler.steps import PREEMPTION_DEADLINE_S, next_step

# Half of what fits into one round (`rounds.MAX_EVENTS`), because as many runs may be asked to exit.
AT_ONCE = 500
"""Maximum number of a pass's decisions that are recorded together; the next pass records the rest."""


def decide_pool(state: State, pool: str) -> Decision:
    """Decide which requests get slots of a pool and which runs are asked to exit."""
    state.index.gate.update_books()
    return decide(state.index.books[pool])


def decision_events(state: State, pool: str, decision: Decision) -> Sequence[Any]:
    """Return the decision about a pool as events; empty if nothing waits or nothing fits."""
    settings = state.pools[pool].settings
    fence_s = settings.fence_after_s if settings.on_lost == "fence" else 0.0
    free = _FreeSlots(state)
    events: list[Any] = []
    for placement in decision.allocate[:AT_ONCE]:
        allocation = state.allocations[placement.allocation_id]
        parts = tuple(free.take(share, rank) for rank, share in enumerate(placement.shares))
        events.append(
            scheduler.AllocationAssigned(
                allocation_id=allocation.id,
                task_id=allocation.task_id,
                kind=allocation.kind,
                parts=parts,
                trial_id=allocation.trial_id,
                experiment_id=allocation.experiment_id,
                run=allocation.run,
                reason=_assignment_reason(allocation, parts, backfilled=placement.backfilled),
                backfilled=placement.backfilled,
                fence_s=fence_s,
            )
        )
    for release in decision.release[:AT_ONCE]:
        allocation = state.allocations[release.allocation_id]
        # An allocation with a step of its own must not get a second one in the same batch.
        if not next_step(state, allocation):
            events.append(_release_event(state, allocation, release))
    return events


def _release_event(state: State, allocation: Allocation, release: Release) -> Any:
    """Ask for the slots back. A run that has not started yet has nothing to save, so it is killed."""
    reason = _preemption_reason(state, release.wanted_by)
    if allocation.state == "ASSIGNED":
        return scheduler.KillRequested(allocation.id, f"{reason}; it had not started yet")
    return scheduler.PreemptRequested(
        allocation_id=allocation.id,
        reason=reason,
        wanted_by=release.wanted_by,
        within_s=PREEMPTION_DEADLINE_S,
    )


def _preemption_reason(state: State, wanted_by: str) -> str:
    winner = state.allocations.get(wanted_by)
    if winner is None:
        return "its job holds more than its fair share of the slots, and others wait"
    job = state.jobs.get(winner.experiment_id)
    priority = f" (priority {job.priority})" if job else ""
    whose = f"experiment {winner.experiment_id}" if winner.experiment_id > 0 else "another task"
    return f"its slots are wanted by {whose}{priority}"


class _FreeSlots:
    """Free slots of workers, in ascending order, as one pass hands them out."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._slots: dict[str, list[int]] = {}

    def take(self, share: Share, rank: int) -> scheduler.Part:
        if share.agent_id not in self._slots:
            worker, taken = (
                self._state.workers[share.agent_id],
                self._state.occupancy.taken_on(share.agent_id),
            )
            self._slots[worker.id] = [
                slot.id for slot in worker.slots if slot.id not in taken and worker.slot_switch(slot.id).open
            ]
            self._slots[worker.id].sort()
        # The lists are shared by all placements of the pass, so that no slot is handed out twice.
        slots = self._slots[share.agent_id]
        taken_now, slots[: share.slots] = tuple(slots[: share.slots]), []
        return scheduler.Part(share.agent_id, taken_now, rank)


def _assignment_reason(allocation: Allocation, parts: Sequence[scheduler.Part], *, backfilled: bool) -> str:
    if not allocation.slots:
        return f"needs no slot; placed on {parts[0].worker_id}"
    where = ", ".join(f"{len(p.slots)} on {p.worker_id}" for p in parts)
    what = f"{allocation.slots} slots are free" if allocation.slots > 1 else "a slot is free"
    gap = "; it fills a gap until a larger request of higher priority fits" if backfilled else ""
    return f"{what}: {where}{gap}"
