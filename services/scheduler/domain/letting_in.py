"""Who is let in to the books, of those whom quotas limit: greedily, in the order of the queue, gangs whole.

The first one that finds too few slots keeps what is left of them for itself, lest small ones pass a gang for
ever; what can never start, as it is beyond its quota or its pool, keeps nothing. This takes the accounts that
are limited and wait, and those who are let in; how many wait behind them does not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from heapq import heappop, heappush

from services.kit.quotas.usage import Account
from services.kit.sorted_keys import SortedKeys
from services.scheduler.policy.book import Book
from services.scheduler.policy.capacity import is_impossible
from services.scheduler.policy.group_queue import GroupQueue, Walk, size_of
from services.scheduler.policy.records import Request

LineKey = tuple[str, str, Account]
"""(pool, job, account)"""
Rank = tuple[int, float, Decimal, float]
"""Priority; what the job holds for its weight, where pools share by that; its place in the queue."""


class Line:
    """What waits of one job in one pool, on one account."""

    def __init__(self, pool: str, account: Account) -> None:
        self.pool = pool
        self.account = account
        self.queue = GroupQueue()
        self.rank: Rank | None = None
        """Of its first request; None: it is in no lane."""

    def walk(self) -> Walk:
        """Its requests in queue order."""
        return Walk((lane, 0, len(lane)) for lane in self.queue.lanes(zero_slot=False))

    def requests(self) -> Iterator[Request]:
        """Likewise."""
        return iter(self.walk())

    def rank_of(self, book: Book, first: Request, held: int) -> Rank:
        """Where a job with that first request stands that holds so many slots."""
        if book.settings.type == "priority":
            return book.priority(first.group), 0.0, first.position, first.submitted_at
        share = held / (book.group(first.group).weight or 1.0)
        return book.settings.default_priority, share, first.position, first.submitted_at


class Lane:
    """The jobs of one account that wait, by rank."""

    def __init__(self, holders: tuple[str, ...]) -> None:
        self.holders = holders
        """Those whose quotas limit it."""
        self.jobs = SortedKeys()
        """(rank, line)"""

    def put(self, key: LineKey, line: Line, rank: Rank | None) -> None:
        """Move a line to its place; None: out of the lane."""
        before = (line.rank, key) if line.rank is not None else None
        self.jobs.swap(before, (rank, key) if rank is not None else None)
        line.rank = rank

    def lines(self) -> list[LineKey]:
        """Its lines, in order."""
        return [key for _, key in self.jobs]


class _Front:
    """A job whose next request is looked at."""

    def __init__(self, lane: Lane, line: Line) -> None:
        self.lane = lane
        self.line = line
        self.fresh = True
        """It was not looked at yet."""
        self.taken = 0
        """Slots of those of its requests that are let in."""
        self.walk = line.walk()
        self._requests = iter(self.walk)
        self.request: Request | None = None
        self.go_on()

    def go_on(self) -> None:
        """Look at the next one."""
        self.request = next(self._requests, None)


class LettingIn:
    """One look at all lanes that are limited."""

    def __init__(
        self,
        lines: Mapping[LineKey, Line],
        books: Mapping[str, Book],
        held: Counter[str],
        limit: Mapping[str, int],
        used: Mapping[str, int],
    ) -> None:
        """`held`: slots of each job; `limit` and `used`: slots of each holder of a quota."""
        self.found: dict[str, Request] = {}
        """Who is let in."""
        self.kept: dict[str, list[str]] = {}
        """Holder of a quota -> those for whom its slots are kept: who is let in, and the gang that waits."""
        self._lines = lines
        self._books = books
        self._held = held
        self._limit = limit
        self._room = {name: slots - used[name] for name, slots in limit.items()}
        self._ahead: list[tuple[Rank, LineKey, _Front]] = []
        self._coming: dict[int, Iterator[tuple[Rank, LineKey]]] = {}

    def run(self, lanes: Iterable[Lane]) -> None:
        """Go through the jobs of all lanes together, as far as there is room."""
        lanes = list(lanes)
        self._coming = {id(lane): lane.jobs.scan() for lane in lanes}
        for lane in lanes:
            self._next_job(lane)
        while self._ahead:
            _, key, front = heappop(self._ahead)
            if self._look(front):
                self._push(key, front)
            if front.fresh:
                front.fresh = False
                self._next_job(front.lane)

    def _next_job(self, lane: Lane) -> None:
        following = next(self._coming[id(lane)], None) if self._has_room(lane) else None
        if following is not None:
            rank, key = following
            heappush(self._ahead, (rank, key, _Front(lane, self._lines[key])))

    def _push(self, key: LineKey, front: _Front) -> None:
        if front.request is not None:
            held = self._held[front.request.group] + front.taken
            rank = front.line.rank_of(self._books[front.line.pool], front.request, held)
            heappush(self._ahead, (rank, key, front))

    def _has_room(self, lane: Lane) -> bool:
        return all(self._room[name] > 0 for name in lane.holders)

    def _look(self, front: _Front) -> bool:
        """Rule on a job's next request; False when nothing more of the job can be let in."""
        holders = front.lane.holders
        while front.request is not None and self._has_room(front.lane):
            request = front.request
            if self._never(front.line.pool, holders, request):
                front.walk.leave_lane()
                front.go_on()
                continue
            lacking = [name for name in holders if self._room[name] < request.slots]
            for name in lacking or holders:
                self.kept.setdefault(name, []).append(request.allocation_id)
                self._room[name] = 0 if lacking else self._room[name] - request.slots
            if lacking:
                return False
            self.found[request.allocation_id] = request
            front.taken += request.slots
            front.go_on()
            return True
        return False

    def _never(self, pool: str, holders: Iterable[str], request: Request) -> bool:
        beyond = any(request.slots > self._limit[name] for name in holders)
        return beyond or is_impossible(self._books[pool], size_of(request))
