"""One group's requests in queue order, with the sums that a pass asks for."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from heapq import heapify, heappop, heapreplace
from typing import Any, NamedTuple

from services.scheduler.policy.records import Request, Running

Place = tuple[Decimal, float, float, str]
"""Queue order inside a priority: position, age of the job, own age, id."""
Lane = list[tuple[Place, Request]]
"""Requests of one group and one size, in queue order."""


class Size(NamedTuple):
    """Requests of one size fit, or fail to fit, alike."""

    slots: int
    single_agent: bool


class Sums(NamedTuple):
    """What a group has and wants, in slots."""

    active: int
    """What its running requests hold."""
    kept: int
    """The part of `active` that cannot be asked back."""
    wanted: int
    """What its waiting requests need."""
    smallest: int
    """The smallest request that waits; 0 when none does."""


def size_of(request: Request) -> Size:
    """What decides whether a request fits."""
    return Size(request.slots, request.single_agent)


def place_of(request: Request) -> Place:
    """The place of a request among those of the same priority (scheduling spec, sections 1 and 4)."""
    return request.position, request.submitted_at, request.requested_at, request.allocation_id


class GroupQueue:
    """What waits and what runs of one group."""

    def __init__(self) -> None:
        self.held = 0
        """Slots that its running requests hold."""
        self.leaving = 0
        """The part of `held` that is on its way back."""
        self.expected = 0
        """Slots of requests that may come again any moment."""
        self._active: Counter[int] = Counter()
        self._kept: Counter[int] = Counter()
        self._sums: tuple[tuple[int, int, frozenset[Size]], Sums] | None = None
        self._lanes: dict[Size, Lane] = {}
        self._running: dict[bool, list[tuple[Place, Running]]] = {False: [], True: []}

    def __bool__(self) -> bool:
        return bool(self._lanes or self._running[False] or self._running[True] or self.expected)

    def wait(self, request: Request) -> None:
        """File a request that waits."""
        insort(self._lanes.setdefault(size_of(request), []), (place_of(request), request))
        self._sums = None

    def unwait(self, request: Request) -> None:
        """Forget one that waited."""
        self._sums = None
        lane = self._lanes[size_of(request)]
        _remove(lane, place_of(request))
        if not lane:
            del self._lanes[size_of(request)]

    def run(self, running: Running) -> None:
        """File a request that holds slots."""
        insort(self._running[running.request.slots == 0], (place_of(running.request), running))
        self._count(running, 1)

    def unrun(self, running: Running) -> None:
        """Forget one that held slots."""
        _remove(self._running[running.request.slots == 0], place_of(running.request))
        self._count(running, -1)

    def _count(self, running: Running, sign: int) -> None:
        slots = running.request.slots
        self.held += sign * slots
        self._active[slots] += sign * slots
        self._kept[slots] += 0 if running.request.preemptible else sign * slots
        self._sums = None
        self.leaving += sign * slots if running.leaving else 0

    def lanes(self, zero_slot: bool) -> Iterator[Lane]:
        """What waits of one kind; none of them is empty."""
        return (lane for size, lane in self._lanes.items() if (size.slots == 0) == zero_slot)

    def sizes(self) -> Iterable[Size]:
        """The sizes of what waits."""
        return self._lanes.keys()

    def waiting(self, size: Size) -> int:
        """How many requests of a size wait."""
        return len(self._lanes.get(size, ()))

    def sums(self, limit: int, most: int, never: frozenset[Size]) -> Sums:
        """Slots of the requests that need one or more, up to the limit.

        Of those that wait only those up to `most`, and without the sizes in `never`.
        """
        key = limit, most, never
        if self._sums is None or self._sums[0] != key:
            self._sums = key, self._summed(*key)
        return self._sums[1]

    def _summed(self, limit: int, most: int, never: frozenset[Size]) -> Sums:
        lanes = {size: lane for size, lane in self._lanes.items() if size.slots <= most and size not in never}
        waiting = [size.slots for size in lanes if size.slots > 0]
        return Sums(
            active=sum(held for slots, held in self._active.items() if slots <= limit),
            kept=sum(held for slots, held in self._kept.items() if slots <= limit),
            wanted=sum(size.slots * len(lane) for size, lane in lanes.items()),
            smallest=min(waiting, default=0),
        )

    def running(self, zero_slot: bool) -> list[tuple[Place, Running]]:
        """What runs of one kind, in queue order."""
        return self._running[zero_slot]


def _remove(filed: list[Any], place: Place) -> None:
    del filed[bisect_left(filed, place, key=lambda entry: entry[0])]


Slice = tuple[Lane, int, int]
"""Part of a lane: from, and up to but not with."""


class Walk:
    """Requests of several lanes in queue order. While one is looked at, its lane can be left."""

    def __init__(self, slices: Iterable[Slice]) -> None:
        self._heads = [(lane[start], start, stop, lane) for lane, start, stop in slices if start < stop]
        heapify(self._heads)
        self._skip = False

    def __iter__(self) -> Iterator[Request]:
        heads = self._heads
        while heads:
            entry, index, stop, lane = heads[0]
            self._skip = False
            yield entry[1]
            if self._skip or index + 1 == stop:
                heappop(heads)
            else:
                heapreplace(heads, (lane[index + 1], index + 1, stop, lane))

    def leave_lane(self) -> Slice:
        """Look at nothing more of this lane; returns what was left, with the present one."""
        self._skip = True
        _, index, stop, lane = self._heads[0]
        return lane, index, stop

    def this(self) -> Slice:
        """The present request alone."""
        _, index, _, lane = self._heads[0]
        return lane, index, index + 1
