"""One group's requests in queue order, with the sums that a pass needs."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from heapq import heapify, heappop, heapreplace
from typing import Any, NamedTuple

from services.scheduler.policy.records import Request, Running

QueueKey = tuple[Decimal, float, float, str]
"""Queue order within a priority: position, age of the job, age of the request, id."""
Lane = list[tuple[QueueKey, Request]]
"""Requests of one group and one size, in queue order."""


class Size(NamedTuple):
    """Determines whether a request fits: requests of one size either all fit or all do not."""

    slots: int
    single_agent: bool


class Sums(NamedTuple):
    """What a group holds and wants, in slots."""

    active: int
    """Slots held by its running requests."""
    unreclaimable: int
    """The part of `active` that cannot be reclaimed."""
    wanted: int
    """Slots needed by its waiting requests."""
    smallest: int
    """Size of its smallest waiting request; 0 if none waits."""


def size_of(request: Request) -> Size:
    """The size of a request."""
    return Size(request.slots, request.single_agent)


def queue_key(request: Request) -> QueueKey:
    """The place of a request among those of the same priority (scheduling spec, sections 1 and 4)."""
    return request.position, request.submitted_at, request.requested_at, request.allocation_id


class GroupQueue:
    """The waiting and running requests of one group."""

    def __init__(self) -> None:
        self.held = 0
        """Slots held by its running requests."""
        self.leaving = 0
        """The part of `held` that is being given back."""
        self.expected = 0
        """Slots of requests that may be made again at any moment."""
        self._active: Counter[int] = Counter()
        self._unreclaimable: Counter[int] = Counter()
        self._sums: tuple[tuple[int, int, frozenset[Size]], Sums] | None = None
        self._lanes: dict[Size, Lane] = {}
        self._running: dict[bool, list[tuple[QueueKey, Running]]] = {False: [], True: []}

    def __bool__(self) -> bool:
        return self.has_waiting or self.has_running or bool(self.expected)

    @property
    def has_waiting(self) -> bool:
        """Whether a request waits."""
        return bool(self._lanes)

    @property
    def has_running(self) -> bool:
        """Whether a request runs, with or without slots."""
        return bool(self._running[False] or self._running[True])

    def add_waiting(self, request: Request) -> None:
        """Add a waiting request."""
        insort(self._lanes.setdefault(size_of(request), []), (queue_key(request), request))
        self._sums = None

    def remove_waiting(self, request: Request) -> None:
        """Remove a waiting request."""
        self._sums = None
        lane = self._lanes[size_of(request)]
        _remove(lane, queue_key(request))
        if not lane:
            del self._lanes[size_of(request)]

    def add_running(self, running: Running) -> None:
        """Add a running request."""
        insort(self._running[running.request.slots == 0], (queue_key(running.request), running))
        self._count(running, 1)

    def remove_running(self, running: Running) -> None:
        """Remove a running request."""
        _remove(self._running[running.request.slots == 0], queue_key(running.request))
        self._count(running, -1)

    def _count(self, running: Running, sign: int) -> None:
        slots = running.request.slots
        self.held += sign * slots
        self._active[slots] += sign * slots
        self._unreclaimable[slots] += 0 if running.request.preemptible else sign * slots
        self._sums = None
        self.leaving += sign * slots if running.leaving else 0

    def lanes(self, zero_slot: bool) -> Iterator[Lane]:
        """The lanes of waiting requests with or without slots. None is empty."""
        return (lane for size, lane in self._lanes.items() if (size.slots == 0) == zero_slot)

    def sizes(self) -> Iterable[Size]:
        """The sizes of the waiting requests."""
        return self._lanes.keys()

    def waiting(self, size: Size) -> int:
        """Number of waiting requests of a size."""
        return len(self._lanes.get(size, ()))

    def sums(self, limit: int, max_slots: int, impossible: frozenset[Size]) -> Sums:
        """Sum up the slots of requests that need at least one slot, up to the limit.

        Of the waiting requests, only those up to `max_slots` slots and not of a size in `impossible` count.
        """
        key = limit, max_slots, impossible
        # Fair sharing asks for the sums of every group in each pass, and few groups change in between.
        if self._sums is None or self._sums[0] != key:
            self._sums = key, self._summed(*key)
        return self._sums[1]

    def _summed(self, limit: int, max_slots: int, impossible: frozenset[Size]) -> Sums:
        lanes = {
            size: lane
            for size, lane in self._lanes.items()
            if size.slots <= max_slots and size not in impossible
        }
        waiting = [size.slots for size in lanes if size.slots > 0]
        return Sums(
            active=sum(held for slots, held in self._active.items() if slots <= limit),
            unreclaimable=sum(held for slots, held in self._unreclaimable.items() if slots <= limit),
            wanted=sum(size.slots * len(lane) for size, lane in lanes.items()),
            smallest=min(waiting, default=0),
        )

    def running(self, zero_slot: bool) -> list[tuple[QueueKey, Running]]:
        """The running requests with or without slots, in queue order."""
        return self._running[zero_slot]


def _remove(entries: list[Any], place: QueueKey) -> None:
    # Keys are unique, because they end with the id.
    del entries[bisect_left(entries, place, key=lambda entry: entry[0])]


Slice = tuple[Lane, int, int]
"""Part of a lane: start (inclusive) and stop (exclusive)."""


class Walk:
    """Iterates over requests of several lanes in queue order. The current request's lane can be left."""

    def __init__(self, slices: Iterable[Slice]) -> None:
        self._heads = [(lane[start], start, stop, lane) for lane, start, stop in slices if start < stop]
        # Lanes are merged lazily: most passes stop after a few requests and must not sort thousands.
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

    def skip_lane(self) -> Slice:
        """Skip the rest of the current lane. Returns the skipped part, including the current request."""
        self._skip = True
        _, index, stop, lane = self._heads[0]
        return lane, index, stop

    def current(self) -> Slice:
        """The current request alone."""
        _, index, _, lane = self._heads[0]
        return lane, index, index + 1
