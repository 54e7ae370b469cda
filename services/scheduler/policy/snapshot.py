"""What one scheduling pass looks at, and what it decides (scheduling spec, sections 1 and 7).

A pass is a pure function `Snapshot -> Decision` over one resource pool. "Release" asks a running
allocation to leave; it keeps its slots until it has left.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal

import msgspec

FittingPolicy = Literal["best", "worst"]
DEFAULT_PRIORITY = 42


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """A host as the pass sees it."""

    id: str
    slots: int
    """Usable slots: those that a user disabled are not counted."""
    slots_used: int = 0
    max_zero_slot: int = 100
    """How many zero-slot tasks may run here at once."""
    zero_slot_used: int = 0
    enabled: bool = True
    draining: bool = False

    @property
    def open(self) -> bool:
        """Whether new work may come here."""
        return self.enabled and not self.draining

    @property
    def empty(self) -> int:
        """Slots that new work may take."""
        return max(0, self.slots - self.slots_used) if self.open else 0

    @property
    def empty_zero(self) -> int:
        """Zero-slot tasks that may still come."""
        return max(0, self.max_zero_slot - self.zero_slot_used) if self.open else 0


class Share(msgspec.Struct, frozen=True):
    """The part of an allocation on one agent; 0 slots for a zero-slot task."""

    agent_id: str
    slots: int


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """What a job's owner chose for all of its tasks together."""

    priority: int = DEFAULT_PRIORITY
    """1 to 99; smaller goes first."""
    weight: float = 1.0
    max_slots: int | None = None
    """Most slots that the group may hold at once; None: no limit."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """An allocation that wants slots, or holds them."""

    allocation_id: str
    job_id: str
    group: str
    """Key into the snapshot's groups."""
    slots: int
    preemptible: bool = True
    single_agent: bool = False
    """Whether all slots must be on one agent."""
    position: Decimal = Decimal(0)
    """The job's place in the queue; smaller goes first. Starts as the submission time in microseconds."""
    submitted_at: float = 0.0
    """When the job was submitted; seconds since the epoch."""
    requested_at: float = 0.0
    """When this allocation was asked for; seconds since the epoch."""


class Running(msgspec.Struct, frozen=True):
    """An allocation that holds slots."""

    request: Request
    shares: tuple[Share, ...]


class PoolSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a resource pool was configured (scheduling spec, section 7)."""

    fitting_policy: FittingPolicy = "best"
    allow_heterogeneous_fits: bool = False
    preemption: bool = False


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a pass depends on."""

    agents: tuple[Agent, ...]
    """`slots_used` and `zero_slot_used` already count what is in `running`."""
    groups: Mapping[str, Group]
    """A group that is not listed has the default priority and no limit."""
    waiting: tuple[Request, ...]
    running: tuple[Running, ...] = ()
    settings: PoolSettings = PoolSettings()

    def group_of(self, request: Request) -> Group:
        """The group of a request; the defaults when it has none."""
        return self.groups.get(request.group, Group())


class Placement(msgspec.Struct, frozen=True):
    """Slots for one request. `shares` are in order of rank: most slots first, then by agent id."""

    allocation_id: str
    shares: tuple[Share, ...]
    backfilled: bool = False
    """Whether it fills a gap in front of a request of higher priority that does not fit yet."""


class Release(msgspec.Struct, frozen=True):
    """An allocation to ask to leave, for the sake of `wanted_by`."""

    allocation_id: str
    wanted_by: str


class Decision(msgspec.Struct, frozen=True):
    """What one pass leads to. Asked again about the same snapshot, a pass says the same."""

    allocate: tuple[Placement, ...] = ()
    release: tuple[Release, ...] = ()
