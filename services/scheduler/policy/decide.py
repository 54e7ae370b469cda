"""One scheduling pass over a pool, using the pool's configured policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from services.scheduler.policy import fair_share, priority, round_robin
from services.scheduler.policy.book import Book
from services.scheduler.policy.records import NOTHING, Decision

_POLICIES: Mapping[str, Callable[[Book], Decision]] = {
    "fair_share": fair_share.decide,
    "priority": priority.decide,
    "round_robin": round_robin.decide,
}


def decide(book: Book) -> Decision:
    """Decide which requests get slots and which runs are asked to exit. The book is not changed."""
    if book.idle_pass.is_valid():
        return NOTHING
    return _POLICIES[book.settings.type](book)
