"""The scheduler's records. All are frozen: an event replaces a record and never modifies it in place."""

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
"""How long a user's own task is kept after its end, in seconds."""
WORKERS_KEPT_S = 30 * DAY_S
"""How long an absent worker is kept, in seconds."""
CLOSED_WORKERS_KEPT_S = 365 * DAY_S
"""The same for a worker that a person disabled, even in part, so that it returns disabled, in seconds."""
DEFAULT_PRIORITY = 42
DEFAULT_POOL = "default"


class Switch(msgspec.Struct, frozen=True):
    """Whether a worker or slot takes work, as set by a person."""

    enabled: bool = True
    draining: bool = False
    """Disabled only for new work."""

    @property
    def open(self) -> bool:
        """Whether new work may come."""
        return self.enabled and not self.draining


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """A host that offers slots."""

    id: str
    instance: str = ""
    """Identifies its folder and distinguishes it from an earlier worker with the same id."""
    host: str = ""
    """Host name of the machine; "" in records written by an earlier version."""
    refused: str = ""
    """The newest session of another worker that tried to use the id while this one is here."""
    session: str
    sessions: tuple[str, ...] = ()
    """Those of the newest registrations under its id, refused ones too; see `remember_session`."""
    pool: str
    address: str
    version: str
    slots: tuple[Slot, ...]
    presence: Presence = "here"
    registered_at: float
    switch: Switch = Switch()
    slot_switches: dict[int, Switch] = {}
    """By slot id; slots that are not listed are open."""
    gone_at: float = 0.0
    """When it went away, in seconds since the epoch."""
    released: bool = False
    """Its pool is giving it back: it gets no new work."""
    shrunk: bool = False
    """It once came back with fewer slots, and what ran on the missing ones may not be over yet."""

    @property
    def known_until(self) -> float | None:
        """When it may be forgotten unless it comes back; None while it is here."""
        switches = (self.switch, *self.slot_switches.values())
        kept_s = WORKERS_KEPT_S if all(switch.open for switch in switches) else CLOSED_WORKERS_KEPT_S
        return None if self.presence == "here" else self.gone_at + kept_s

    def slot_switch(self, slot_id: int) -> Switch:
        """The switch of one slot."""
        return self.slot_switches.get(slot_id, Switch())


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """The part of an allocation that is on one worker."""

    worker_id: str
    slots: tuple[int, ...]
    rank: int
    started: bool = False
    over: bool = False
    daemon: bool = False
    """It serves the other members and ends with them."""
    lost: bool = False
    """The worker or the slots are gone. Its processes may still run until `over` is set."""
    exit_code: int | None = None
    message: str = ""
    permanent: bool = False
    """Another attempt would fail in the same way."""
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
    """Whether it was placed ahead of a request of higher priority that did not fit."""
    fence_s: float = 0.0
    """Its hosts end it after this time without contact, in seconds.

    0: never; lost parts then count as over at once.
    """
    stop: Stop = ""
    """What the searcher wants it to do."""
    stop_reason: str = ""
    stop_at: float = 0.0
    asked_to_leave: bool = False
    late: bool = False
    """It did not exit in time after it was asked to, or it was idle for too long."""
    idle_s: float = 0.0
    """How long it may stay idle, in seconds, once it reports that nobody uses it. 0: not reported."""
    killed: str = ""
    """Why it is being killed; "" if it is not."""
    killed_from: int = 0
    """Position in the log of the decision to kill it."""
    killed_whole: bool = False
    """Whether no part of it had ended by itself before it was killed."""

    @property
    def leaving(self) -> bool:
        """Whether its slots will become free without a further request."""
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
    """A decimal number; smaller goes first."""

    @property
    def queue_position(self) -> Decimal:
        """Its position as a number."""
        return Decimal(self.position) if self.position else initial_position(self.submitted_at)


class OwnTask(msgspec.Struct, frozen=True):
    """A task that a user started directly. Its record stays for a while after its end."""

    number: int
    over: bool = False
    ended_at: float = 0.0
    """When it ended, in seconds since the epoch; valid only if it is over."""


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """A resource pool. Its key is touched whenever a pass over the queue might decide something new."""

    name: str
    description: str = ""
    settings: PoolSettings = PoolSettings()


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """A trial between two runs: one run is over, and the searcher has not yet judged it.

    Its slots stay reserved for a while.
    """

    trial_id: int
    experiment_id: int
    pool: str
    slots: int
    due_at: float = 0.0
    """When others may have its slots, in seconds since the epoch."""


class Totals(msgspec.Struct, frozen=True):
    """How many task numbers have been assigned."""

    tasks: int = 0


class Deadline(msgspec.Struct, frozen=True):
    """The time by which an allocation must have exited."""

    due_at: float


def initial_position(submitted_at: float) -> Decimal:
    """The initial place of a job: its submission time in microseconds (scheduling spec, section 6)."""
    return Decimal(int(submitted_at * 1e6))
