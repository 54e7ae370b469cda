"""Which runs must exit for a blocked request: the least urgent first (scheduling spec, section 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from heapq import merge

from services.scheduler.policy.book import Book, can_preempt
from services.scheduler.policy.fitting import Pool
from services.scheduler.policy.group_queue import QueueKey, queue_key
from services.scheduler.policy.records import Request, Running

Rank = tuple[int, Decimal]
"""Priority and position in the queue; larger ranks yield first."""
_ALREADY_LEAVING: Rank = (1 << 30, Decimal(0))
"""The rank of a run that was already asked to exit: it yields to every request."""


class Victims:
    """The running requests of one kind in the order in which they yield, without those already taken.

    Runs that were already asked to exit come first, then the preemptible ones of the lowest level.
    """

    def __init__(self, book: Book, zero_slot: bool) -> None:
        self.taken = 0
        self._leaving = sorted(
            (r for r in book.leaving.values() if (r.request.slots == 0) == zero_slot),
            key=lambda r: (book.priority(r.request.group), queue_key(r.request)),
            reverse=True,
        )
        # Filled lazily: on a large pool most are never needed.
        self._loaded: list[tuple[Rank, Running]] = [(_ALREADY_LEAVING, running) for running in self._leaving]
        self._remaining = _least_urgent_first(book, zero_slot)

    def already_leaving(self) -> Sequence[Running]:
        """Runs that were asked to exit earlier and that no other request counts on yet."""
        return self._leaving[self.taken :]

    def any_behind(self, rank: Rank) -> bool:
        """Whether any run would yield to a request of this rank."""
        return next(self._behind(rank), None) is not None

    def take_fewest(self, pool: Pool, request: Request, rank: Rank) -> list[Running]:
        """Take the fewest runs, in order, without which the request fits; empty if all are not enough."""
        trial: Pool | None = None
        removed = []
        for running in self._behind(rank):
            trial = trial or pool.copy()
            trial.free(running.shares)
            removed.append(running)
            if trial.fits_after(running.shares, request):
                self.taken += len(removed)
                return removed
        return []

    def _behind(self, rank: Rank) -> Iterator[Running]:
        """Runs not yet taken that yield to a rank; at its own level only jobs strictly behind it."""
        index = self.taken
        while True:
            if index == len(self._loaded):
                more = next(self._remaining, None)
                if more is None:
                    return
                self._loaded.append(more)
            yields, running = self._loaded[index]
            if yields <= rank:
                return
            yield running
            index += 1


def _least_urgent_first(book: Book, zero_slot: bool) -> Iterator[tuple[Rank, Running]]:
    for priority in sorted(book.levels, reverse=True):
        entries = [book.queues[name].running(zero_slot) for _, name in book.levels[priority]]
        level: Iterator[tuple[QueueKey, Running]] = merge(
            *map(reversed, entries), key=_entry_key, reverse=True
        )
        for _, running in level:
            if can_preempt(book, running):
                yield (priority, running.request.position), running


def _entry_key(entry: tuple[QueueKey, Running]) -> QueueKey:
    return entry[0]
