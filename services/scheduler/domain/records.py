"""The scheduler's records. All frozen: an event replaces a record, nothing is changed in place."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

import msgspec

from det_contracts.events.scheduler import PoolSettings, TaskKind
from det_contracts.events.worker import Slot
from det_contracts.states import AllocationState

Presence = Literal["here", "lost", "left"]
Stop = Literal["", "leave", "die"]
DAY_S = 86_400.0
TASKS_KEPT_S = 90 * DAY_S
"""How long a task of somebody's own is known after its end."""
WORKERS_KEPT_S = 30 * DAY_S
"""How long a worker that is away is known."""
CLOSED_WORKERS_KEPT_S = 365 * DAY_S
"""The same of one that a person has closed, or a slot of it: it comes back as closed as it went."""
DEFAULT_PRIORITY = 42
DEFAULT_POOL = "default"


class Switch(msgspec.Struct, frozen=True):
    """Whether a worker or slot takes work, as a person set it."""

    enabled: bool = True
    draining: bool = False
    """Not enabled for new work only."""

    @property
    def open(self) -> bool:
        """New work may come."""
        return self.enabled and not self.draining


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """A host that offers slots."""

    id: str
    instance: str = ""
    """Of its folder; tells it from another worker that had the id before."""
    host: str = ""
    """Name of the machine; empty in what an earlier version kept."""
    refused: str = ""
    """The newest session of another one that wants the id while this one is here."""
    session: str
    pool: str
    address: str
    version: str
    slots: tuple[Slot, ...]
    presence: Presence = "here"
    registered_at: float
    switch: Switch = Switch()
    slot_switches: dict[int, Switch] = {}
    """By slot id; those that are not listed are open."""
    gone_at: float = 0.0
    """Since when it is not here; seconds since the epoch."""
    released: bool = False
    """Its pool gives it back: no new work comes here."""
    shrunk: bool = False
    """It once came back with fewer slots than it had; what ran on those may not be over yet."""

    @property
    def known_until(self) -> float | None:
        """When it may be forgotten, unless it comes back; None while it is here."""
        switches = (self.switch, *self.slot_switches.values())
        kept_s = WORKERS_KEPT_S if all(one.open for one in switches) else CLOSED_WORKERS_KEPT_S
        return None if self.presence == "here" else self.gone_at + kept_s

    def slot_switch(self, slot_id: int) -> Switch:
        """How one slot is switched."""
        return self.slot_switches.get(slot_id, Switch())


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """An allocation's share of one worker."""

    worker_id: str
    slots: tuple[int, ...]
    rank: int
    started: bool = False
    over: bool = False
    daemon: bool = False
    """It serves the others and ends with them."""
    lost: bool = False
    """The worker is gone, or the slots, and the processes with them; these may still run until it is over."""
    exit_code: int | None = None
    message: str = ""
    permanent: bool = False
    """Another try would meet the same failure."""
    ended: int = 0
    """Position of its exit in the log."""


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
    requested_at: float
    requested: int
    """Position of the request in the log."""
    state: AllocationState = "PENDING"
    members: tuple[Member, ...] = ()
    assigned: int = 0
    """Position of the assignment in the log."""
    backfilled: bool = False
    """It was placed in front of a request of higher priority that did not fit."""
    fence_s: float = 0.0
    """Without contact for so long its hosts end it; 0: never, and what is lost counts as over at once."""
    stop: Stop = ""
    """What the searcher wants of it."""
    stop_reason: str = ""
    stop_at: float = 0.0
    asked_to_leave: bool = False
    late: bool = False
    """It was asked to leave and did not in time, or was idle for too long."""
    idle_s: float = 0.0
    """It says that nobody uses it, and may do so for this long; 0: it is used, or does not say."""
    killed: str = ""
    """Why it is being killed; empty when it is not."""
    killed_from: int = 0
    """Position in the log of the decision to kill it."""
    killed_whole: bool = False
    """Nothing of it had ended by itself before it was killed."""

    @property
    def leaving(self) -> bool:
        """Its slots come free without anybody asking again."""
        return self.asked_to_leave or bool(self.killed) or bool(self.stop)


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A unit of the queue: one per experiment."""

    experiment_id: int
    submitted_at: float
    pool: str = "default"
    priority: int = DEFAULT_PRIORITY
    weight: float = 1.0
    max_slots: int | None = None
    position: str = ""
    """Decimal number; smaller goes first."""

    @property
    def place(self) -> Decimal:
        """Its position as a number."""
        return Decimal(self.position) if self.position else first_place(self.submitted_at)


class OwnTask(msgspec.Struct, frozen=True):
    """A task that somebody started by themselves; its record stays for a while after its end."""

    number: int
    over: bool = False
    ended_at: float = 0.0
    """Once it is over; seconds since the epoch."""


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """A resource pool; its key moves whenever a pass over the queue might decide something new."""

    name: str
    description: str = ""
    settings: PoolSettings = PoolSettings()


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """A trial between two runs: one is over, and the searcher has not said yet what that means.

    Its share is kept for it, for a while.
    """

    trial_id: int
    experiment_id: int
    pool: str
    slots: int
    due_at: float = 0.0
    """Then others may have its share; seconds since the epoch."""


class Totals(msgspec.Struct, frozen=True):
    """How many numbers were given out."""

    tasks: int = 0


class Deadline(msgspec.Struct, frozen=True):
    """Until when an allocation may take to leave."""

    due_at: float


def first_place(submitted_at: float) -> Decimal:
    """Where a new job stands: its submission time in microseconds (scheduling spec, section 6)."""
    return Decimal(int(submitted_at * 1e6))
