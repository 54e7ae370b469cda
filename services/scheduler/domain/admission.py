"""Decides which quota-limited requests are admitted to the books: greedily, in queue order, whole gangs only.

The first request that finds too few slots reserves the remaining ones, so that small requests cannot starve a
gang. A request that can never start because it exceeds its quota or its pool reserves nothing. The cost
depends on the number of limited accounts that have waiting requests and on the number of admitted requests,
not on the length of the queue behind them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from heapq import heappop, heappush

from services.kit.quotas.usage import Account
from services.kit.sorted_keys import SortedKeys
from services.scheduler.policy.book import Book
from services.scheduler.policy.capacity import is_impossible
from services.scheduler.policy.group_queue import GroupQueue, QueueKey, Size, queue_key
from services.scheduler.policy.records import Request

LineKey = tuple[str, str, Account, Size]
"""(pool, job, account, size)"""
Rank = tuple[int, float, QueueKey]
"""Priority, then the job's weighted slot share (in fair-share pools), then its place in the queue."""


class Line:
    """The waiting requests of one job in one pool, on one account, of one size."""

    def __init__(self, pool: str, account: Account, size: Size) -> None:
        self.pool = pool
        self.account = account
        self.size = size
        self.queue = GroupQueue()
        self.rank: Rank | None = None
        """Rank of its first request, or None if it is in no lane."""

    def requests(self) -> Iterator[Request]:
        """Yield its requests in queue order."""
        return (request for lane in self.queue.lanes(zero_slot=False) for _, request in lane)

    def rank_of(self, book: Book, request: Request, held: int) -> Rank:
        """Rank of one of its requests, given the slots that the job holds."""
        if book.settings.type == "priority":
            return book.priority(request.group), 0.0, queue_key(request)
        share = held / (book.group(request.group).weight or 1.0)
        return book.settings.default_priority, share, queue_key(request)


class Lane:
    """The lines of one account, grouped by pool and size, and ordered by rank within each group.

    They are grouped because some sizes can never start.
    """

    def __init__(self, holders: tuple[str, ...]) -> None:
        self.holders = holders
        """The holders of the quotas that limit this account."""
        self._streams: dict[tuple[Size, str], SortedKeys] = {}
        """(rank, line)"""
        self._sizes = SortedKeys()

    def __bool__(self) -> bool:
        return bool(self._streams)

    def put(self, key: LineKey, line: Line, rank: Rank | None) -> None:
        """Move a line to its new rank. None removes it from the lane."""
        before = (line.rank, key) if line.rank is not None else None
        line.rank = rank
        place = line.size, line.pool
        stream = self._streams.get(place)
        if stream is None:
            stream = self._streams[place] = SortedKeys()
            self._sizes.add(*place)
        stream.swap(before, (rank, key) if rank is not None else None)
        if not stream:
            del self._streams[place]
            self._sizes.discard(*place)

    def lines(self) -> list[LineKey]:
        """All lines of the lane."""
        return [key for stream in self._streams.values() for _, key in stream]

    def streams(self, most: int) -> Iterator[tuple[str, Size, Iterator[tuple[Rank, LineKey]]]]:
        """Yield (pool, size, lines by rank) for each pool and each size up to `most` slots."""
        # `True` sorts last among sizes of as many slots, so both kinds of that size are included.
        for size, pool in self._sizes.up_to(Size(most, True)):
            yield pool, size, self._streams[size, pool].scan()


class _LineCursor:
    """The line whose requests are being examined, and the lines behind it."""

    def __init__(self, lane: Lane, line: Line, behind: Iterator[tuple[Rank, LineKey]]) -> None:
        self.lane = lane
        self.line = line
        self.behind: Iterator[tuple[Rank, LineKey]] | None = behind
        """None once the first of these lines has been queued itself."""
        self.requests = line.requests()


class AdmissionPass:
    """One admission pass over all limited lanes."""

    def __init__(
        self,
        lines: Mapping[LineKey, Line],
        books: Mapping[str, Book],
        held: Counter[str],
        limit: Mapping[str, int],
        used: Mapping[str, int],
    ) -> None:
        """Start with the slots `held` by each job, and the `limit` and `used` slots of each quota holder."""
        self.admitted: dict[str, Request] = {}
        """The admitted requests."""
        self.reserved: dict[str, list[str]] = {}
        """Holder of a quota -> requests that get its slots: the admitted ones, and a waiting gang."""
        self._lines = lines
        self._books = books
        self._held = held
        self._admitted_slots: Counter[str] = Counter()
        """Slots of each job's admitted requests."""
        self._limit = limit
        self._room = {name: slots - used[name] for name, slots in limit.items()}
        self._candidates: list[tuple[Rank, LineKey, _LineCursor, Request]] = []

    def run(self, lanes: Iterable[Lane]) -> None:
        """Go through the lines of all lanes in rank order while there is room."""
        for lane in filter(self._has_room, lanes):
            for pool, size, lines in lane.streams(min(self._limit[name] for name in lane.holders)):
                if not is_impossible(self._books[pool], size):
                    self._push_next_line(lane, lines)
        while self._candidates:
            rank, key, front, request = heappop(self._candidates)
            if not self._has_room(front.lane):
                continue
            if front.behind is not None:
                # Only now, when the first request of the line before it has had its turn: the heap stays as
                # small as the number of lines that were reached.
                self._push_next_line(front.lane, front.behind)
                front.behind = None
            # Another line of the job may have taken slots since this one was pushed.
            if self._rank(front.line, request) > rank:
                self._push(key, front, request)
            else:
                self._admit_or_reserve(front.lane.holders, request)
                self._push(key, front, next(front.requests, None))

    def _push_next_line(self, lane: Lane, lines: Iterator[tuple[Rank, LineKey]]) -> None:
        _, key = next(lines, (None, None))
        if key is not None:
            front = _LineCursor(lane, self._lines[key], lines)
            self._push(key, front, next(front.requests, None))

    def _push(self, key: LineKey, front: _LineCursor, request: Request | None) -> None:
        if request is not None:
            heappush(self._candidates, (self._rank(front.line, request), key, front, request))

    def _rank(self, line: Line, request: Request) -> Rank:
        held = self._held[request.group] + self._admitted_slots[request.group]
        return line.rank_of(self._books[line.pool], request, held)

    def _has_room(self, lane: Lane) -> bool:
        return all(self._room[name] > 0 for name in lane.holders)

    def _admit_or_reserve(self, holders: Iterable[str], request: Request) -> None:
        """Admit a request, or reserve the remaining slots for it."""
        lacking = [name for name in holders if self._room[name] < request.slots]
        for name in lacking or holders:
            self.reserved.setdefault(name, []).append(request.allocation_id)
            self._room[name] = 0 if lacking else self._room[name] - request.slots
        if not lacking:
            self.admitted[request.allocation_id] = request
            self._admitted_slots[request.group] += request.slots
