"""Who has to leave for a blocked request: the least urgent first (scheduling spec, section 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from heapq import merge

from services.scheduler.policy.book import Book, may_yield
from services.scheduler.policy.fitting import Pool
from services.scheduler.policy.group_queue import Place, place_of
from services.scheduler.policy.records import Request, Running

Rank = tuple[int, Decimal]
"""Priority and position in the queue: larger ones yield first."""
_ANYWAY: Rank = (1 << 30, Decimal(0))
"""The rank of what was already asked to leave: it yields to everybody."""


class Victims:
    """The running requests of one kind in the order in which they yield; what was taken is gone.

    Those that were already asked to leave come first, then the preemptible ones of the lowest level.
    """

    def __init__(self, book: Book, zero_slot: bool) -> None:
        self.taken = 0
        self._leaving = sorted(
            (r for r in book.leaving.values() if (r.request.slots == 0) == zero_slot),
            key=lambda r: (book.priority(r.request.group), place_of(r.request)),
            reverse=True,
        )
        # Looked up as far as a request asks: on a large pool most are never needed.
        self._known: list[tuple[Rank, Running]] = [(_ANYWAY, running) for running in self._leaving]
        self._more = _least_urgent_first(book, zero_slot)

    def on_their_way(self) -> Sequence[Running]:
        """What was asked to leave earlier and is not yet counted on by anybody."""
        return self._leaving[self.taken :]

    def any_behind(self, rank: Rank) -> bool:
        """Whether anybody would yield to a request of that rank."""
        return next(self._behind(rank), None) is not None

    def enough(self, pool: Pool, request: Request, rank: Rank) -> list[Running]:
        """Take the fewest, in their order, without which the request fits; none if that is not enough."""
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
        """Those not yet taken that yield to a rank; in its own level only jobs strictly behind it."""
        index = self.taken
        while True:
            if index == len(self._known):
                more = next(self._more, None)
                if more is None:
                    return
                self._known.append(more)
            yields, running = self._known[index]
            if yields <= rank:
                return
            yield running
            index += 1


def _least_urgent_first(book: Book, zero_slot: bool) -> Iterator[tuple[Rank, Running]]:
    for priority in sorted(book.levels, reverse=True):
        filed = [book.queues[name].running(zero_slot) for name in book.levels[priority]]
        level: Iterator[tuple[Place, Running]] = merge(*map(reversed, filed), key=_place, reverse=True)
        for _, running in level:
            if may_yield(book, running):
                yield (priority, running.request.position), running


def _place(entry: tuple[Place, Running]) -> Place:
    return entry[0]
