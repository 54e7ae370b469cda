"""The round robin scheduler: one request of each group in turn while the group's next one fits.

Source: scheduling spec, section 5. It asks nothing to exit and ignores weights and limits.
"""

from __future__ import annotations

from collections.abc import Iterator

from services.scheduler.policy.book import Book
from services.scheduler.policy.group_queue import GroupQueue, Size, Walk, size_of
from services.scheduler.policy.records import NOTHING, Decision, Placement, Request


def decide(book: Book) -> Decision:
    """Run one pass over a pool."""
    decision = Decision(tuple(_take_turns(book)))
    if decision == NOTHING:
        book.idle_pass.record(lambda request: _changes_nothing(book, request))
    return decision


def _take_turns(book: Book) -> list[Placement]:
    names = sorted(book.queues, key=lambda name: (book.queues[name].held, book.group(name).registered, name))
    active = [(book.queues[name], _requests(book.queues[name])) for name in names]
    pool = book.pool.copy()
    no_fit: set[Size] = set()
    placements = []
    while active:
        remaining = []
        for queue, requests in active:
            # In a full pool most queues end here, before their requests have to be put in order.
            request = None if no_fit.issuperset(queue.sizes()) else next(requests, None)
            if request is None or size_of(request) in no_fit:
                continue
            shares = pool.fit(request)
            if shares is not None:
                pool.take(shares)
                placements.append(Placement(request.allocation_id, shares))
                remaining.append((queue, requests))
            elif not book.settings.allow_heterogeneous_fits:
                # Slots only shrink within a pass, but a greedy mix of agents can succeed with fewer.
                no_fit.add(size_of(request))
        active = remaining
    return placements


def _requests(queue: GroupQueue) -> Iterator[Request]:
    """The waiting requests of a group in order, which is found once the first is asked for."""
    yield from _walk(queue)


def _walk(queue: GroupQueue) -> Walk:
    lanes = [*queue.lanes(False), *queue.lanes(True)]
    return Walk((lane, 0, len(lane)) for lane in lanes)


def _changes_nothing(book: Book, request: Request) -> bool:
    """After a pass without placements: whether one more request changes nothing."""
    # A group whose first request does not fit is not looked at any further, so only a new first one
    # matters.
    first = next(iter(_walk(book.queues[request.group])))
    return first.allocation_id != request.allocation_id or not book.pool.fits(request)
