"""Where one request fits (scheduling spec, section 2).

Agents of the same shape score alike, so the pool keeps them together, ordered by hash: a fit looks
at each shape once and finds the nearest agent in it by bisection.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable

import msgspec

from services.scheduler.policy.snapshot import Agent, FittingPolicy, PoolSettings, Request, Share

Shape = tuple[int, int, int, int]
Member = tuple[int, str]
_WRAP = 1 << 64


def score(policy: FittingPolicy, slots_needed: int, agent: Agent) -> float:
    """How good an agent is for a request of that size, 0 to 1: `best` packs, `worst` spreads."""
    if slots_needed > 0 or agent.slots_used > 0:
        if policy == "best":
            return 1 / (1 + agent.empty)
        return agent.empty / agent.slots if agent.slots else 0.0
    if agent.max_zero_slot == 0:
        return 0.0
    if policy == "best":
        return 1 / (1 + agent.empty_zero)
    return agent.empty_zero / agent.max_zero_slot


def hash_of(text: str) -> int:
    """The first 8 bytes of the MD5, little endian: a tie-break that is the same everywhere."""
    return int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest()[:8], "little")


def address_of(agent_id: str) -> str:
    """An agent's address, which takes part in the tie-break."""
    return f"/{agent_id}"


class Pool:
    """The agents of a pool while a pass gives out and takes back their slots."""

    def __init__(self, agents: Iterable[Agent], settings: PoolSettings) -> None:
        self._settings = settings
        self._agents = {agent.id: agent for agent in agents if agent.open}
        self._shapes: dict[Shape, list[Member]] = defaultdict(list)
        for agent in self._agents.values():
            self._shapes[_shape(agent)].append(_member(agent))
        for members in self._shapes.values():
            members.sort()

    def copy(self) -> Pool:
        """A pool to try things on."""
        twin = Pool((), self._settings)
        twin._agents = dict(self._agents)
        twin._shapes.update((shape, list(members)) for shape, members in self._shapes.items())
        return twin

    def fit(self, request: Request) -> tuple[Share, ...] | None:
        """Choose agents for a request, in order of rank; None when it does not fit whole."""
        key = hash_of(request.allocation_id)
        shared = self._one_agent(request.slots, key)
        if shared is not None:
            return (Share(shared, request.slots),)
        if request.single_agent or request.slots <= 1:
            return None
        return self._gang(request.slots, key)

    def take(self, shares: Iterable[Share]) -> None:
        """Count the shares as used."""
        for share in shares:
            self._count(share, 1)

    def free(self, shares: Iterable[Share]) -> None:
        """Count the shares as left. Agents that take no new work stay out of the pool."""
        for share in shares:
            self._count(share, -1)

    def _count(self, share: Share, sign: int) -> None:
        agent = self._agents.get(share.agent_id)
        if agent is None:
            return
        members = self._shapes[_shape(agent)]
        del members[bisect_left(members, _member(agent))]
        if not members:
            del self._shapes[_shape(agent)]
        if share.slots:
            agent = msgspec.structs.replace(agent, slots_used=agent.slots_used + sign * share.slots)
        else:
            agent = msgspec.structs.replace(agent, zero_slot_used=agent.zero_slot_used + sign)
        self._agents[agent.id] = agent
        insort(self._shapes[_shape(agent)], _member(agent))

    def _one_agent(self, slots: int, key: int) -> str | None:
        best: tuple[float, int, str] | None = None
        for members in self._shapes.values():
            agent = self._agents[_id(members[0])]
            if slots > agent.empty or (slots == 0 and agent.empty_zero == 0):
                continue
            nearest = _nearest(members, key)
            rank = (-score(self._settings.fitting_policy, slots, agent), _distance(key, nearest), nearest[1])
            best = rank if best is None else min(best, rank)
        return None if best is None else _id((0, best[2]))

    def _gang(self, slots: int, key: int) -> tuple[Share, ...] | None:
        """Whole idle agents: equal ones where possible, else largest first if the pool allows a mix."""
        idle = self._idle()
        for size in sorted(idle, reverse=True):
            if size * len(idle[size]) >= slots and slots % size == 0:
                return _nearest_of(idle[size], size, slots // size, key)
        return _mixed(idle, slots, key) if self._settings.allow_heterogeneous_fits else None

    def _idle(self) -> dict[int, list[Member]]:
        idle: dict[int, list[Member]] = defaultdict(list)
        for (slots, used, _, _), members in self._shapes.items():
            if slots > 0 and used == 0:
                idle[slots] += members
        return idle


def _mixed(idle: dict[int, list[Member]], slots: int, key: int) -> tuple[Share, ...] | None:
    chosen: tuple[Share, ...] = ()
    for size in sorted(idle, reverse=True):
        count = min(slots // size, len(idle[size]))
        chosen += _nearest_of(idle[size], size, count, key)
        slots -= count * size
    return chosen if slots == 0 else None


def _nearest_of(members: list[Member], size: int, count: int, key: int) -> tuple[Share, ...]:
    nearest = sorted(members, key=lambda member: (_distance(key, member), member[1]))[:count]
    return tuple(Share(agent_id, size) for agent_id in sorted(map(_id, nearest)))


def _shape(agent: Agent) -> Shape:
    return agent.slots, agent.slots_used, agent.max_zero_slot, agent.zero_slot_used


def _member(agent: Agent) -> Member:
    address = address_of(agent.id)
    return hash_of(address), address


def _id(member: Member) -> str:
    return member[1][1:]


def _distance(key: int, member: Member) -> int:
    return (key - member[0]) % _WRAP


def _nearest(members: list[Member], key: int) -> Member:
    """The member with the smallest distance; index -1 is the wrap-around."""
    return members[bisect_right(members, key, key=lambda member: member[0]) - 1]
