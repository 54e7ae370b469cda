"""Explains which quota keeps a request out of its pool's book, for the user who waits for it."""

from __future__ import annotations

from services.kit.quotas import limits
from services.scheduler.domain import State
from services.scheduler.domain.gate import Placed
from services.scheduler.policy.capacity import cannot_hold, counted
from services.scheduler.policy.records import Request

SHOWN = 3
"""Number of requests that an explanation mentions by name."""


class Outside:
    """Explains the requests that are currently kept out. Each sum is computed once."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._gate = state.index.gate
        self._gate.settle()
        self._sums: dict[str, int] = {}

    def why(self, allocation_id: str) -> str:
        """One or two sentences, or "" if no quota keeps the request out."""
        placed = self._gate.outsider(allocation_id)
        if placed is None:
            return ""
        holders = limits.limiting(self._state, placed.account, "slots")
        request, free = placed.request, self._free(placed)
        for one in holders:
            if request.slots > self._limit(one):
                return (
                    f"It needs {counted(request.slots)}, and {self._name(one)} may hold "
                    f"{counted(self._limit(one))} at once: it waits until that quota is raised."
                )
        return self._too_large(placed) or self._full(request, holders, free) or self._behind(holders, free)

    def _full(self, request: Request, holders: tuple[str, ...], free: str) -> str:
        for one in holders:
            if self._used(one) + request.slots > self._limit(one):
                return (
                    f"{self._upper(one)} holds {self._used(one)} of its {counted(self._limit(one))}, "
                    f"and it needs {request.slots} more; {free}."
                )
        return ""

    def _behind(self, holders: tuple[str, ...], free: str) -> str:
        for one in holders:
            ids = self._gate.kept.get(one, ())
            if ids:
                more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
                return (
                    f"{self._upper(one)} holds {self._used(one)} of its {counted(self._limit(one))}, and the "
                    f"rest is kept for {', '.join(ids[:SHOWN])}{more}, ahead in the queue; {free}."
                )
        return "It is within its quotas, and takes its place in the queue with the next pass."

    def _too_large(self, placed: Placed) -> str:
        book, request = self._state.index.books[placed.pool], placed.request
        usable = [agent for agent in book.agents.values() if agent.open]
        return cannot_hold(usable, book.settings, request.slots, request.single_agent)

    def _free(self, placed: Placed) -> str:
        book = self._state.index.books[placed.pool]
        open_ = (agent for agent in book.agents.values() if agent.open)
        free = sum(max(0, agent.slots - book.used.get(agent.id, (0, 0))[0]) for agent in open_)
        return f"{free} {'is' if free == 1 else 'are'} free in the pool"

    def _used(self, holder: str) -> int:
        if holder not in self._sums:
            self._sums |= limits.used(self._state, self._gate.usage, [holder])
        return self._sums[holder]

    def _limit(self, holder: str) -> int:
        return limits.limit_of(self._state, holder, "slots") or 0

    def _name(self, holder: str) -> str:
        return limits.called(self._state, holder)

    def _upper(self, holder: str) -> str:
        name = self._name(holder)
        return name[0].upper() + name[1:]
