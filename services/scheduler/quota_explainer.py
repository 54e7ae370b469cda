"""Explains which quota keeps a request out of its pool's book, for the user who waits for it."""

from __future__ import annotations

from collections.abc import Callable

from services.kit.quotas import limits
from services.scheduler.domain import State
from services.scheduler.domain.gate import ChargedRequest
from services.scheduler.policy.book import free_slots
from services.scheduler.policy.capacity import explain_too_large, format_slots
from services.scheduler.policy.records import Request

MAX_SHOWN = 3
"""Number of requests that an explanation mentions by name."""


class QuotaExplainer:
    """Explains the requests that are currently kept out. Each sum is computed once."""

    def __init__(self, state: State, called: Callable[[str], str]) -> None:
        """`called` returns what users call an allocation."""
        self._state = state
        self._called = called
        self._gate = state.index.gate
        self._gate.update_books()
        self._used_slots: dict[str, int] = {}

    def why(self, allocation_id: str) -> str:
        """One or two sentences, or "" if no quota keeps the request out."""
        placed = self._gate.not_admitted_request(allocation_id)
        if placed is None:
            return ""
        holders = limits.limiting_holders(self._state, placed.account, "slots")
        request, free = placed.request, self._describe_free(placed)
        for holder in holders:
            if request.slots > self._limit(holder):
                return (
                    f"It needs {format_slots(request.slots)}, and {self._holder_name(holder)} may hold "
                    f"{format_slots(self._limit(holder))} at once: it waits until that quota is raised."
                )
        return (
            self._explain_too_large(placed)
            or self._explain_full(request, holders, free)
            or self._explain_behind(holders, free)
        )

    def _explain_full(self, request: Request, holders: tuple[str, ...], free: str) -> str:
        for holder in holders:
            if self._used(holder) + request.slots > self._limit(holder):
                return (
                    f"{self._capitalized_name(holder)} holds {self._used(holder)} of its "
                    f"{format_slots(self._limit(holder))}, and it needs {request.slots} more; {free}."
                )
        return ""

    def _explain_behind(self, holders: tuple[str, ...], free: str) -> str:
        for holder in holders:
            ids = self._gate.reserved.get(holder, ())
            if ids:
                names = ", ".join(map(self._called, ids[:MAX_SHOWN]))
                more = f" and {len(ids) - MAX_SHOWN} more" if len(ids) > MAX_SHOWN else ""
                return (
                    f"{self._capitalized_name(holder)} holds {self._used(holder)} of its "
                    f"{format_slots(self._limit(holder))}, and the rest is "
                    f"kept for {names}{more}, ahead in the queue; {free}."
                )
        return "It is within its quotas, and takes its place in the queue with the next pass."

    def _explain_too_large(self, placed: ChargedRequest) -> str:
        book, request = self._state.index.books[placed.pool], placed.request
        usable = [agent for agent in book.agents.values() if agent.open]
        return explain_too_large(usable, book.settings, request.slots, request.single_agent)

    def _describe_free(self, placed: ChargedRequest) -> str:
        book = self._state.index.books[placed.pool]
        free = sum(free_slots(book, agent) for agent in book.agents.values() if agent.open)
        return f"{free} {'is' if free == 1 else 'are'} free in the pool"

    def _used(self, holder: str) -> int:
        if holder not in self._used_slots:
            self._used_slots |= limits.usage_of(self._state, self._gate.usage, [holder])
        return self._used_slots[holder]

    def _limit(self, holder: str) -> int:
        return limits.limit_of(self._state, holder, "slots") or 0

    def _holder_name(self, holder: str) -> str:
        return limits.describe_holder(self._state, holder)

    def _capitalized_name(self, holder: str) -> str:
        name = self._holder_name(holder)
        return name[0].upper() + name[1:]
