"""The inputs and the decisions of a scheduling pass (scheduling spec, sections 1 and 7).

"Release" asks a running allocation to exit; it keeps its slots until it has exited.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

import msgspec

SchedulerType = Literal["fair_share", "priority", "round_robin"]
FittingPolicy = Literal["best", "worst"]
DEFAULT_PRIORITY = 42


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """A host as a pass sees it. What runs on it is recorded elsewhere."""

    id: str
    slots: int
    """Usable slots: those that a user disabled are not counted."""
    max_zero_slot: int | None = None
    """How many zero-slot tasks may run here at once; None: the pool's setting."""
    enabled: bool = True
    draining: bool = False
    used_elsewhere: tuple[int, int] = (0, 0)
    """Slots and zero-slot places in use by runs of another pool, from before the agent moved to this one."""

    @property
    def open(self) -> bool:
        """Whether new work may come here."""
        return self.enabled and not self.draining


class Share(msgspec.Struct, frozen=True):
    """The part of an allocation on one agent; 0 slots for a zero-slot task."""

    agent_id: str
    slots: int


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """What a job's owner chose for all of its tasks together."""

    priority: int | None = None
    """1 to 99; smaller goes first. None: the pool's default."""
    weight: float = 1.0
    max_slots: int | None = None
    """Maximum number of slots that the group may hold at once; None: no limit."""
    registered: float = 0.0
    """When the group arrived, in any unit: a smaller number is an older group."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """An allocation that waits for slots or holds them."""

    allocation_id: str
    job_id: str
    group: str
    """Name of its group. A group that was not described has the defaults."""
    slots: int
    preemptible: bool = True
    single_agent: bool = False
    """Whether all slots must be on one agent."""
    position: Decimal = Decimal(0)
    """The job's place in the queue; smaller goes first. Initially the submission time in microseconds."""
    submitted_at: float = 0.0
    """When the job was submitted; seconds since the epoch."""
    requested_at: float = 0.0
    """When this allocation was requested, in any unit that grows."""


class Running(msgspec.Struct, frozen=True):
    """An allocation that holds slots."""

    request: Request
    shares: tuple[Share, ...]
    leaving: bool = False
    """Whether it was already asked to give its slots back."""
    backfilled: bool = False
    """Whether it was placed ahead of a request of higher priority that did not fit."""


class PoolSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a resource pool (scheduling spec, section 7)."""

    type: SchedulerType = "fair_share"
    fitting_policy: FittingPolicy = "best"
    allow_heterogeneous_fits: bool = False
    preemption: bool = False
    """Whether the priority scheduler may ask others to exit."""
    default_priority: int = DEFAULT_PRIORITY
    max_aux_containers_per_agent: int = 100


class Placement(msgspec.Struct, frozen=True):
    """Slots for one request. `shares` are in rank order: most slots first, then by agent id."""

    allocation_id: str
    shares: tuple[Share, ...]
    backfilled: bool = False
    """Whether it fills a gap ahead of a request of higher priority that does not fit yet."""


class Release(msgspec.Struct, frozen=True):
    """An allocation to ask to exit."""

    allocation_id: str
    wanted_by: str = ""
    """The request that needs its slots; "" if its group holds more than its fair share."""


class Decision(msgspec.Struct, frozen=True):
    """The result of one pass. Repeating the pass over the same book gives the same result."""

    allocate: tuple[Placement, ...] = ()
    release: tuple[Release, ...] = ()


NOTHING = Decision()
