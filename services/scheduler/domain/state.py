"""The scheduler's records. All frozen: an event replaces a record, nothing is changed in place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import msgspec

from det_contracts.events.scheduler import TaskKind
from det_contracts.events.worker import Slot
from det_contracts.states import AllocationState

Presence = Literal["here", "lost", "left"]
Stop = Literal["", "leave", "die"]


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """A host that offers slots."""

    id: str
    session: str
    pool: str
    address: str
    version: str
    slots: tuple[Slot, ...]
    presence: Presence = "here"
    registered_at: float


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """An allocation's share of one worker."""

    worker_id: str
    slots: tuple[int, ...]
    rank: int
    started: bool = False
    over: bool = False
    lost: bool = False
    """The worker is gone, and the processes with it."""
    exit_code: int | None = None
    message: str = ""


class Allocation(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a task, from the request until its slots are free again."""

    id: str
    task_id: str
    kind: TaskKind
    experiment_id: int
    trial_id: int | None
    run: int
    slots: int
    pool: str
    priority: int
    requested_at: float
    requested: int
    """Position of the request in the log."""
    state: AllocationState = "PENDING"
    members: tuple[Member, ...] = ()
    assigned: int = 0
    """Position of the assignment in the log."""
    stop: Stop = ""
    """What the searcher wants of it."""
    stop_reason: str = ""
    stop_at: float = 0.0
    deadline_at: float | None = None
    """Until when it may take to leave; None unless it was asked to."""
    deadline_passed: bool = False
    killed: bool = False


class Job(msgspec.Struct, frozen=True):
    """A unit of the queue: one per experiment."""

    experiment_id: int
    submitted_at: float


class Pool(msgspec.Struct, frozen=True):
    """A resource pool; its record moves whenever a pass over the queue might decide something new."""

    name: str
    pending: tuple[str, ...] = ()
    """Allocations that wait for slots, in the order of their requests."""


@dataclass
class State:
    """Everything that the scheduler folds out of the log."""

    workers: dict[str, Worker] = field(default_factory=dict)
    allocations: dict[str, Allocation] = field(default_factory=dict)
    jobs: dict[int, Job] = field(default_factory=dict)
    pools: dict[str, Pool] = field(default_factory=dict)
