"""What the scheduler decides: who runs where, who yields, and when a run is over."""

from __future__ import annotations

from typing import Literal

import msgspec

from det_contracts.codec import event

TaskKind = Literal["TRIAL", "CHECKPOINT_GC"]
Outcome = Literal["succeeded", "failed", "killed", "worker_lost", "not_started"]


class Part(msgspec.Struct, frozen=True):
    """An allocation's share of one worker."""

    worker_id: str
    slots: tuple[int, ...]
    """Slot ids on that worker, ascending; empty for a zero-slot task."""
    rank: int
    """0 is the chief."""


@event("scheduler.allocation.assigned", key="allocation_id")
class AllocationAssigned(msgspec.Struct, frozen=True, kw_only=True):
    """Slots are held for the allocation. Each worker named in `parts` starts its share."""

    allocation_id: str
    task_id: str
    kind: TaskKind
    parts: tuple[Part, ...]
    trial_id: int | None = None
    experiment_id: int
    run: int
    reason: str


@event("scheduler.allocation.preempt_requested", key="allocation_id")
class PreemptRequested(msgspec.Struct, frozen=True, kw_only=True):
    """The script is asked to save and leave; it listens. Killed when it has not left by `deadline_at`."""

    allocation_id: str
    deadline_at: float
    """Seconds since the epoch, UTC."""
    reason: str


@event("scheduler.allocation.kill_requested", key="allocation_id")
class KillRequested(msgspec.Struct, frozen=True):
    """Workers end what runs of the allocation, at once."""

    allocation_id: str
    reason: str


@event("scheduler.allocation.ended", key="allocation_id")
class AllocationEnded(msgspec.Struct, frozen=True, kw_only=True):
    """Every member is gone and the slots are free. The searcher judges what it means for the trial."""

    allocation_id: str
    kind: TaskKind
    trial_id: int | None = None
    run: int
    outcome: Outcome
    exit_code: int | None = None
    reason: str


@event("scheduler.worker.lost", key="worker_id")
class WorkerLost(msgspec.Struct, frozen=True):
    """No sign of life for longer than the reconnect wait; what ran there ends as `worker_lost`."""

    worker_id: str
    reason: str


@event("scheduler.allocation.deadline_passed", key="allocation_id")
class DeadlinePassed(msgspec.Struct, frozen=True):
    """A due time that the scheduler's state holds has come: time as a fact of the log."""

    allocation_id: str
    due_at: float
