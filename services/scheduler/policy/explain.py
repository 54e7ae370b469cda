"""Explains in one sentence why a request waits, for the user who waits for it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence
from heapq import nsmallest
from itertools import islice
from typing import Any

from services.scheduler.policy.book import Book, free_slots, group_headroom
from services.scheduler.policy.capacity import explain_too_large, format_slots
from services.scheduler.policy.decide import decide
from services.scheduler.policy.group_queue import GroupQueue, QueueKey, Size, queue_key, size_of
from services.scheduler.policy.offers import Offers, offers_of
from services.scheduler.policy.records import Decision, Request

NAMED = 3
"""How many allocations a sentence names."""


def explain(book: Book, allocation_id: str, decision: Decision | None = None) -> str:
    """Say why a waiting request has no slots; see `Explainer`."""
    return Explainer(book, decision).why(allocation_id)


def explain_never_fits(book: Book, *, slots: int, single_agent: bool = False) -> str:
    """Say why the agents of a pool can never serve a request of this size, and what they could serve.

    Returns "" if they can. Disabled and draining agents count too, because they may be enabled again.
    """
    return explain_too_large(list(book.agents.values()), book.settings, slots, single_agent)


class Explainer:
    """Explains why requests of one book wait. What many of them share is computed once."""

    def __init__(
        self, book: Book, decision: Decision | None = None, called: Callable[[str], str] = str
    ) -> None:
        """`decision` is what a pass over this book decides, if the caller already knows it.

        `called` says how users call an allocation; by default it is named by its id.
        """
        self._book = book
        self._called = called
        self._decision = decide(book) if decision is None else decision
        self._placed = {placement.allocation_id: None for placement in self._decision.allocate}
        self._offers: Offers | None = None
        self._holders: list[tuple[str, GroupQueue]] | None = None
        self._holder_count = 0
        self._lines: dict[Any, _Line] = {}
        self._by_size: dict[tuple[Any, Size], str] = {}

    def why(self, allocation_id: str) -> str:
        """One sentence. Raises `KeyError` if no request with that id waits in the book."""
        request = self._book.waiting.get(allocation_id)
        if request is None:
            raise KeyError(f"allocation {allocation_id} does not wait in this pool")
        if allocation_id in self._placed:
            return "It fits and is about to start."
        return (
            _explain_over_limit(self._book, request)
            or self._explain_by_size(self._explain_too_large_now, request)
            or self._explain_fair_share(request)
            or self._explain_pending_releases(request)
            or self._explain_by_size(self._explain_no_free_slots, request)
            or self._explain_behind(request)
        )

    def _explain_by_size(self, explain_size: Callable[[Request], str], request: Request) -> str:
        """Return what `explain_size` says, cached because it is the same for all requests of a size."""
        key = explain_size, size_of(request)
        if key not in self._by_size:
            self._by_size[key] = explain_size(request)
        return self._by_size[key]

    def _explain_fair_share(self, request: Request) -> str:
        if self._book.settings.type != "fair_share" or request.slots == 0:
            return ""
        if self._offers is None:
            self._offers = offers_of(self._book)
        claim = self._offers.claim_of(request.group) or self._offers.new_claim_of(request.group)
        if request.slots <= claim.offer - claim.active:
            return ""
        # Only trials share a claim with others: those of their experiment.
        whose = "its experiment" if request.preemptible else "its job"
        return (
            f"It needs {request.slots} more: the fair share of {whose} is {claim.offer} of "
            f"{format_slots(self._offers.capacity)} at present, and {whose} holds {claim.active}."
            f"{self._describe_holders(request.group)}"
        )

    def _describe_holders(self, group: str) -> str:
        """The other groups that hold slots, most first. A group is known by its first run."""
        if self._holders is None:
            queues = ((name, queue) for name, queue in self._book.queues.items() if queue.held)
            # One more than is named, since one of them may be the group of the request.
            self._holders = nsmallest(NAMED + 1, queues, key=lambda entry: (-entry[1].held, entry[0]))
            self._holder_count = sum(1 for queue in self._book.queues.values() if queue.held)
        others = [queue for name, queue in self._holders if name != group]
        own = self._book.queues.get(group)
        more = self._holder_count - min(NAMED, len(others)) - (own is not None and own.held > 0)
        if not others:
            return ""
        shown = [self._describe_holder(queue) for queue in others[:NAMED]]
        # As a list, since the name of a holder may have an "and" of its own.
        return f" Others hold slots: {'; '.join(shown)}{f'; and {more} more' if more else ''}."

    def _describe_holder(self, queue: GroupQueue) -> str:
        runs = queue.running(zero_slot=False)
        name = self._called(runs[0][1].request.allocation_id)
        return f"{name}{f' and {len(runs) - 1} more' if len(runs) > 1 else ''} ({queue.held})"

    def _explain_behind(self, request: Request) -> str:
        """Explain that it would fit but another request has the better claim."""
        line = self._line_of(request)
        ahead = bisect_left(line.order_keys, _order_key(self._book, request)) if line else 0
        if line and line.blocked < ahead:
            blocked, book = line.requests[line.blocked], self._book
            level = f"priority {book.priority(blocked.group)}, " if book.settings.type == "priority" else ""
            size = f"{level}needs {format_slots(blocked.slots)}"
            return f"It waits behind {self._called(blocked.allocation_id)} ({size}), which does not fit yet."
        if line and ahead:
            ids = [rival.allocation_id for rival in line.requests[: min(NAMED, ahead)]]
            return f"The free slots go to {self._join_names(ids, ahead)}, ahead in the queue."
        if self._placed:
            ids = list(islice(self._placed, NAMED))
            return f"The free slots go to {self._join_names(ids, len(self._placed))} in this pass."
        return "It fits, and will be placed once the runs that were asked to exit have done so."

    def _line_of(self, request: Request) -> _Line | None:
        """The requests that must be served in order, including this one; None without such an order.

        Under the priority policy these are the requests of the same kind that are not at their limit; under
        round robin, all requests of its group.
        """
        kind = self._book.settings.type
        if kind == "fair_share":
            return None
        key = request.slots == 0 if kind == "priority" else request.group
        if key not in self._lines:
            self._lines[key] = _Line(self._book, self._rivals(key), self._placed)
        return self._lines[key]

    def _rivals(self, key: Any) -> Iterable[Request]:
        book = self._book
        if book.settings.type != "priority":
            return (r for r in book.waiting.values() if r.group == key)
        kind = (r for r in book.waiting.values() if (r.slots == 0) == key)
        return (r for r in kind if (room := group_headroom(book, r.group)) is None or r.slots <= room)

    def _explain_too_large_now(self, request: Request) -> str:
        book = self._book
        usable = [agent for agent in book.agents.values() if agent.open]
        if book.agents and not usable:
            return "Every agent of the resource pool is disabled, draining or out of reach."
        return explain_too_large(usable, book.settings, request.slots, request.single_agent)

    def _explain_pending_releases(self, request: Request) -> str:
        leaving = [r.allocation_id for r in self._decision.release if r.wanted_by == request.allocation_id]
        return (
            f"It waits for {self._join_names(leaving)} to exit: lower in rank, and already asked to."
            if leaving
            else ""
        )

    def _explain_no_free_slots(self, request: Request) -> str:
        """Explain that the agents currently have no room for it; "" if they have."""
        book = self._book
        if book.pool.fits(request):
            return ""
        if request.slots == 0:
            return (
                "Every agent runs its maximum number of tasks without slots (max_aux_containers_per_agent)."
            )
        usable = [agent for agent in book.agents.values() if agent.open]
        empty = [free_slots(book, agent) for agent in usable]
        total, free = sum(agent.slots for agent in usable), sum(empty)
        sentence = f"It needs {format_slots(request.slots)}, {free} of {total} are free"
        if request.slots <= free:
            sentence += f", at most {max(empty)} on one agent"
        leaving = [id for id, running in book.leaving.items() if running.request.slots]
        leaving += [release.allocation_id for release in self._decision.release]
        clause = f"{self._join_names(leaving)} {_was_or_were(leaving)} asked to leave"
        return f"{sentence}; {clause}." if leaving else f"{sentence}."

    def _join_names(self, ids: Sequence[str], count: int = 0) -> str:
        """What users call the first few, and how many more there are."""
        count = count or len(ids)
        names = ", ".join(map(self._called, ids[:NAMED]))
        return names + (f" and {count - NAMED} more" if count > NAMED else "")


class _Line:
    def __init__(self, book: Book, rivals: Iterable[Request], placed: Collection[str]) -> None:
        self.requests = sorted(rivals, key=lambda rival: _order_key(book, rival))
        self.order_keys = [_order_key(book, rival) for rival in self.requests]
        self.blocked = next(
            (at for at, rival in enumerate(self.requests) if rival.allocation_id not in placed),
            len(self.requests),
        )
        """Index of the first request that is not placed by this pass."""


def _order_key(book: Book, request: Request) -> tuple[int, QueueKey]:
    return book.priority(request.group), queue_key(request)


def _explain_over_limit(book: Book, request: Request) -> str:
    room = group_headroom(book, request.group)
    if room is None or request.slots <= room or book.settings.type == "round_robin":
        return ""
    limit = book.group(request.group).max_slots or 0
    return (
        f"Its job may hold {format_slots(limit)} at once (resources.max_slots) and holds {limit - room}; "
        f"it needs {request.slots}."
    )


def _was_or_were(names: list[str]) -> str:
    return "was" if len(names) == 1 else "were"
