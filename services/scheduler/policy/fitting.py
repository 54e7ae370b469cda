"""Finds the agents on which a request fits (scheduling spec, section 2).

Agents of the same shape score alike, so the pool groups them by shape, ordered by hash: a search looks at
each shape once and finds the nearest agent in it by bisection.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from services.scheduler.policy.records import FittingPolicy, PoolSettings, Request, Share

Member = tuple[int, str]
"""An agent within its shape: the hash of its address, and its id."""
_WRAP = 1 << 64


class Shape(NamedTuple):
    """Everything that matters about an agent that takes work: its slots and how many are in use."""

    slots: int
    used: int
    max_zero: int
    zero_used: int

    @property
    def empty(self) -> int:
        """Slots that new work may take."""
        return max(0, self.slots - self.used)

    @property
    def empty_zero(self) -> int:
        """Zero-slot tasks that it can still take."""
        return max(0, self.max_zero - self.zero_used)

    def can_take(self, slots: int) -> bool:
        """Whether a request of this size fits on the agent as a whole."""
        return self.slots - self.used >= slots if slots else self.zero_used < self.max_zero

    def with_share(self, slots: int, sign: int) -> Shape:
        """The shape after a share was added (`sign` 1) or removed (-1)."""
        if slots:
            return Shape(self.slots, self.used + sign * slots, self.max_zero, self.zero_used)
        return Shape(self.slots, self.used, self.max_zero, self.zero_used + sign)


def score(policy: FittingPolicy, slots_needed: int, shape: Shape) -> float:
    """Score an agent for a request of this size, from 0 to 1: `best` packs, `worst` spreads."""
    if slots_needed > 0 or shape.used > 0:
        if policy == "best":
            return 1 / (1 + shape.empty)
        return shape.empty / shape.slots if shape.slots else 0.0
    if shape.max_zero == 0:
        return 0.0
    if policy == "best":
        return 1 / (1 + shape.empty_zero)
    return shape.empty_zero / shape.max_zero


@lru_cache(maxsize=1 << 16)
def hash_of(text: str) -> int:
    """The first 8 bytes of the MD5, little endian: a tie-break that is the same on every machine."""
    return int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest()[:8], "little")


def address_of(agent_id: str) -> str:
    """An agent's address, which is part of the tie-break."""
    # The original has `/agents/<id>`. Any fixed text would do; the recorded vectors of the tests use this
    # one.
    return f"/{agent_id}"


class Pool:
    """The open agents of a pool, while slots are handed out and taken back."""

    def __init__(self, settings: PoolSettings) -> None:
        self.settings = settings
        self._shape_of: dict[str, Shape] = {}
        self._members: dict[Shape, list[Member]] = {}
        self._idle: dict[int, list[Member]] = {}

    def copy(self) -> Pool:
        """A copy for trying out placements."""
        twin = Pool(self.settings)
        twin._shape_of = dict(self._shape_of)
        twin._members = {shape: list(members) for shape, members in self._members.items()}
        twin._idle = {slots: list(members) for slots, members in self._idle.items()}
        return twin

    def put(self, agent_id: str, shape: Shape) -> None:
        """Add an agent that takes work, or update its shape."""
        self.drop(agent_id)
        self._shape_of[agent_id] = shape
        member = hash_of(address_of(agent_id)), agent_id
        insort(self._members.setdefault(shape, []), member)
        if shape.used == 0 and shape.slots > 0:
            insort(self._idle.setdefault(shape.slots, []), member)

    def drop(self, agent_id: str) -> None:
        """Remove an agent, if it is present."""
        shape = self._shape_of.pop(agent_id, None)
        if shape is None:
            return
        member = hash_of(address_of(agent_id)), agent_id
        _remove(self._members, shape, member)
        if shape.used == 0 and shape.slots > 0:
            _remove(self._idle, shape.slots, member)

    def take(self, shares: Iterable[Share]) -> None:
        """Mark the shares as used."""
        for share in shares:
            self._count(share, 1)

    def free(self, shares: Iterable[Share]) -> None:
        """Mark the shares as free. Agents that take no new work stay out of the pool."""
        for share in shares:
            self._count(share, -1)

    def _count(self, share: Share, sign: int) -> None:
        shape = self._shape_of.get(share.agent_id)
        if shape is not None:
            self.put(share.agent_id, shape.with_share(share.slots, sign))

    def fit(self, request: Request) -> tuple[Share, ...] | None:
        """Choose agents for a request, in rank order. None if it does not fit as a whole."""
        key = hash_of(request.allocation_id)
        shared = self._one_agent(request.slots, key)
        if shared is not None:
            return (Share(shared, request.slots),)
        # A gang takes whole agents, so one slot never makes a gang.
        if request.single_agent or request.slots <= 1:
            return None
        return self._gang(request.slots, key)

    def fits(self, request: Request) -> bool:
        """Whether the request fits."""
        if any(shape.can_take(request.slots) for shape in self._members):
            return True
        # Any key will do: it chooses among agents, and not whether there are enough.
        return not request.single_agent and request.slots > 1 and self._gang(request.slots, 0) is not None

    def fits_after(self, shares: Iterable[Share], request: Request) -> bool:
        """Whether a request fits that did not fit until these shares were freed."""
        gang = False
        for share in shares:
            shape = self._shape_of.get(share.agent_id)
            if shape is not None:
                if shape.can_take(request.slots):
                    return True
                gang = gang or shape.used == 0
        gang = gang and not request.single_agent and request.slots > 1
        return gang and self._gang(request.slots, 0) is not None

    def _one_agent(self, slots: int, key: int) -> str | None:
        best: tuple[float, int, str] | None = None
        for shape, members in self._members.items():
            if shape.can_take(slots):
                nearest = _nearest(members, key)
                worth = -score(self.settings.fitting_policy, slots, shape)
                rank = (worth, (key - nearest[0]) % _WRAP, nearest[1])
                best = rank if best is None else min(best, rank)
        return None if best is None else best[2]

    def _gang(self, slots: int, key: int) -> tuple[Share, ...] | None:
        """Choose whole idle agents: equal ones if possible, else largest first if the pool allows a mix."""
        for size in sorted(self._idle, reverse=True):
            if slots % size == 0 and size * len(self._idle[size]) >= slots:
                return _nearest_of(self._idle[size], size, slots // size, key)
        return _mixed(self._idle, slots, key) if self.settings.allow_heterogeneous_fits else None


def _mixed(idle: dict[int, list[Member]], slots: int, key: int) -> tuple[Share, ...] | None:
    chosen: tuple[Share, ...] = ()
    for size in sorted(idle, reverse=True):
        count = min(slots // size, len(idle[size]))
        chosen += _nearest_of(idle[size], size, count, key)
        slots -= count * size
    return chosen if slots == 0 else None


def _start(members: list[Member], key: int) -> int:
    """Index of the member with the smallest distance; -1 wraps around to the last."""
    return bisect_right(members, key, key=lambda member: member[0]) - 1


def _nearest(members: list[Member], key: int) -> Member:
    return members[_start(members, key)]


def _nearest_of(members: list[Member], size: int, count: int, key: int) -> tuple[Share, ...]:
    # Going down from the nearest member, and around, distances grow.
    start = _start(members, key)
    return tuple(Share(id, size) for id in sorted(members[start - step][1] for step in range(count)))


def _remove(index: dict[Any, list[Member]], key: Any, member: Member) -> None:
    members = index[key]
    del members[bisect_left(members, member)]
    if not members:
        del index[key]
