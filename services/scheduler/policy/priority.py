"""The priority scheduler: smaller numbers first, and on wish they may push others out.

Source: scheduling spec, section 4. Zero-slot tasks and tasks with slots do not compete, so each kind
has a pass of its own. A group at its `max_slots` waits without holding up anybody.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from itertools import groupby

from services.scheduler.policy.fitting import Pool
from services.scheduler.policy.snapshot import Decision, Placement, Release, Request, Running, Snapshot

Order = tuple[int, Decimal, float, float, str]
Size = tuple[int, bool]


def decide(snapshot: Snapshot) -> Decision:
    """One pass over a pool."""
    with_slots, without = (_Pass(snapshot, zero_slot=kind) for kind in (False, True))
    with_slots.run()
    without.run()
    return Decision(
        tuple(with_slots.placements + without.placements),
        tuple(with_slots.releases.values()) + tuple(without.releases.values()),
    )


def order(snapshot: Snapshot, request: Request) -> Order:
    """The place of a request in the queue: priority, position, age of its job, own age, id."""
    return (
        snapshot.group_of(request).priority,
        request.position,
        request.submitted_at,
        request.requested_at,
        request.allocation_id,
    )


def room_of(snapshot: Snapshot) -> dict[str, int]:
    """Slots that each limited group may still take."""
    room = {name: g.max_slots for name, g in snapshot.groups.items() if g.max_slots is not None}
    for running in snapshot.running:
        if running.request.group in room:
            room[running.request.group] -= running.request.slots
    return room


class _Pass:
    """One pass over requests of one kind, on a copy of the agents."""

    def __init__(self, snapshot: Snapshot, *, zero_slot: bool) -> None:
        self.placements: list[Placement] = []
        self.releases: dict[str, Release] = {}
        self._snapshot = snapshot
        self._pool = Pool(snapshot.agents, snapshot.settings)
        self._room = room_of(snapshot)
        self._backfilling = False
        self._waiting = sorted(
            (r for r in snapshot.waiting if (r.slots == 0) == zero_slot), key=lambda r: order(snapshot, r)
        )
        self._last_first = sorted(
            (r for r in snapshot.running if (r.request.slots == 0) == zero_slot),
            key=lambda r: order(snapshot, r.request),
            reverse=True,
        )
        # Within a pass slots only shrink and later requests may remove no more than earlier ones, so
        # a size that failed once fails again until releases have changed the pool. Not so for greedy
        # mixes of agents: there a smaller pool can succeed.
        self._no_fit: set[Size] = set()
        self._no_release: set[Size] = set()

    def run(self) -> None:
        """Go through the levels that have waiting requests, most urgent first."""
        for _, level in groupby(self._waiting, key=lambda r: self._snapshot.group_of(r).priority):
            self._level(list(level))

    def _level(self, requests: list[Request]) -> None:
        fitting, blocked = self._try(requests)
        if not self.releases:
            self._allocate(fitting)
        self._backfilling = self._backfilling or bool(blocked)
        if self._snapshot.settings.preemption:
            for request in blocked:
                self._make_room(request)

    def _try(self, requests: list[Request]) -> tuple[list[tuple[Request, Placement]], list[Request]]:
        fitting, blocked = [], []
        for request in requests:
            if request.slots > self._room.get(request.group, request.slots):
                continue
            placement = self._reserve(request)
            if placement is None:
                blocked.append(request)
            else:
                fitting.append((request, placement))
        return fitting, blocked

    def _reserve(self, request: Request) -> Placement | None:
        """Take slots for a request if they are there."""
        shares = None if self._failed(self._no_fit, request) else self._pool.fit(request)
        if shares is None:
            self._no_fit.add(_size(request))
            return None
        self._pool.take(shares)
        if request.group in self._room:
            self._room[request.group] -= request.slots
        return Placement(request.allocation_id, shares, backfilled=self._backfilling)

    def _failed(self, failures: set[Size], request: Request) -> bool:
        return not self._snapshot.settings.allow_heterogeneous_fits and _size(request) in failures

    def _allocate(self, fitting: list[tuple[Request, Placement]]) -> None:
        if not self._backfilling:
            self.placements += [placement for _, placement in fitting]
        elif self._snapshot.settings.preemption:
            self.placements += [placement for request, placement in fitting if request.preemptible]

    def _make_room(self, request: Request) -> None:
        """Release others until a blocked request fits, or leave everything as it is."""
        if request.slots > self._room.get(request.group, request.slots):
            return
        if self._reserve(request) is not None:
            return
        victims = None if self._failed(self._no_release, request) else self._enough_victims(request)
        if victims is None:
            self._no_release.add(_size(request))
            return
        for victim in victims:
            self._pool.free(victim.shares)
            self.releases[victim.request.allocation_id] = Release(
                victim.request.allocation_id, wanted_by=request.allocation_id
            )
        self._no_fit.clear()
        self._no_release.clear()
        self._reserve(request)

    def _enough_victims(self, request: Request) -> list[Running] | None:
        pool, removed = self._pool.copy(), []
        for victim in self._victims(request):
            pool.free(victim.shares)
            removed.append(victim)
            if pool.fit(request) is not None:
                return removed
        return None

    def _victims(self, request: Request) -> Iterator[Running]:
        """What may be removed for a request, least urgent first; in its own level only jobs behind it."""
        level = self._snapshot.group_of(request).priority
        for running in self._last_first:
            priority = self._snapshot.group_of(running.request).priority
            if priority < level or (priority == level and running.request.position <= request.position):
                return
            if running.request.preemptible and running.request.allocation_id not in self.releases:
                yield running


def _size(request: Request) -> Size:
    return request.slots, request.single_agent
