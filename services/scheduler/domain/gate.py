"""The gate in front of the books: admits quota-limited requests only while their quotas have free slots.

A request that is not admitted is in no book, so the policies share, order and preempt among runnable requests
and know nothing of quotas. Which requests are admitted depends only on the records (`admission.py`) and is
computed when a pass or a query needs it. An event only updates sums and one position in one lane.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from services.kit.authz.people import People
from services.kit.quotas import limits
from services.kit.quotas.usage import Account, Usage
from services.scheduler.domain.admission import AdmissionPass, Lane, Line, LineKey
from services.scheduler.policy.book import Book
from services.scheduler.policy.group_queue import size_of
from services.scheduler.policy.records import Request


class ChargedRequest(msgspec.Struct, frozen=True):
    """A request that waits for or holds slots, and the account it is charged to."""

    pool: str
    request: Request
    account: Account

    @property
    def line(self) -> LineKey:
        """The line in which it waits."""
        return self.pool, self.request.group, self.account, size_of(self.request)


class Gate:
    """Admits quota-limited requests into the books. See the module docstring."""

    def __init__(self, people: People, books: Mapping[str, Book]) -> None:
        self.usage = Usage()
        """Slots held, by allocation."""
        self.reserved: dict[str, list[str]] = {}
        """Holder of a quota -> requests that its remaining slots were reserved for by the last pass."""
        self._people = people
        self._books = books
        self._waiting: dict[str, ChargedRequest] = {}
        self._running: dict[str, ChargedRequest] = {}
        self._lines: dict[LineKey, Line] = {}
        self._lines_of: dict[str, dict[LineKey, None]] = {}
        """The lines of each job."""
        self._lanes: dict[Account, Lane] = {}
        self._limited_lanes: dict[Account, Lane] = {}
        """The lanes that quotas limit."""
        self._held: Counter[str] = Counter()
        """Slots held by each job."""
        self._admitted: dict[str, None] = {}
        """The limited requests that are admitted to a book."""
        self._limited: Counter[str] = Counter()
        """Number of limited requests waiting in each pool, admitted or not."""
        self._stale = False

    def wait(self, pool: str, request: Request, account: Account) -> None:
        """Record that a request waits for slots, or that a waiting request has changed."""
        id, placed = request.allocation_id, ChargedRequest(pool, request, account)
        if self._waiting.get(id) != placed:
            self.leave(id)
            self._waiting[id] = placed
            line = self._lines.get(placed.line)
            if line is None:
                line = self._lines[placed.line] = Line(pool, account, size_of(request))
                self._lines_of.setdefault(request.group, {})[placed.line] = None
            line.queue.add_waiting(request)
            self._update_rank(placed.line)
            if self._lanes[account].holders:
                self._limited[pool] += 1
            else:
                self._books[pool].wait(request)
        self._update_rank(placed.line)
        self.mark_stale()

    def run(self, pool: str, request: Request, account: Account) -> None:
        """Record that a request holds slots. The caller updates its book."""
        id, placed = request.allocation_id, ChargedRequest(pool, request, account)
        if self._running.get(id) != placed:
            self.leave(id)
            self._running[id] = placed
            self.usage.set(id, account, request.slots)
            self._change_held(placed, request.slots)

    def leave(self, id: str) -> None:
        """Forget a request. Does nothing if the request is unknown."""
        waited, ran = self._waiting.pop(id, None), self._running.pop(id, None)
        if waited is not None:
            self._admitted.pop(id, None)
            if self._lanes[waited.account].holders:
                self._change_limited(waited.pool, -1)
            self._books[waited.pool].leave(id)
            self._lines[waited.line].queue.remove_waiting(waited.request)
            self._update_rank(waited.line)
        if ran is not None:
            self.usage.remove(id)
            self._change_held(ran, -ran.request.slots)
        self.mark_stale()

    def mark_stale(self) -> None:
        """Mark the admissions as stale: something that they may depend on has changed."""
        # Without limited requests there is nothing to admit, and no event pays for the gate.
        self._stale = self._stale or bool(self._limited)

    def limited_pools(self) -> Iterable[str]:
        """The pools in which limited requests wait.

        Any event may change which of these requests are admitted.
        """
        return self._limited.keys()

    def limits_changed(self) -> None:
        """Recompute which quotas limit which accounts, after quotas, groups or projects changed."""
        for account, lane in list(self._lanes.items()):
            holders = limits.limiting_holders(self._people, account, "slots")
            was, lane.holders = bool(lane.holders), holders
            if was != bool(holders):
                self._switch_limited(account, lane)
        self.mark_stale()

    def settings_changed(self) -> None:
        """Recompute the order of all lines after a pool changed its policy."""
        for key in list(self._lines):
            self._update_rank(key)
        self.mark_stale()

    def _switch_limited(self, account: Account, lane: Lane) -> None:
        """Switch a lane between limited and unlimited."""
        # Requests that are in a book stay there until the next `update_books`.
        if lane.holders:
            self._limited_lanes[account] = lane
        else:
            del self._limited_lanes[account]
        for key in lane.lines():
            for request in self._lines[key].requests():
                self._change_limited(key[0], 1 if lane.holders else -1)
                if lane.holders:
                    # It is in its book already; `update_books` takes it out again if its quota does not admit
                    # it.
                    self._admitted[request.allocation_id] = None
                else:
                    self._admitted.pop(request.allocation_id, None)
                    self._books[key[0]].wait(request)

    def _change_limited(self, pool: str, change: int) -> None:
        self._limited[pool] += change
        if not self._limited[pool]:
            del self._limited[pool]

    def _change_held(self, placed: ChargedRequest, slots: int) -> None:
        group = placed.request.group
        self._held[group] += slots
        if not self._held[group]:
            del self._held[group]
        for key in list(self._lines_of.get(group, ())):
            self._update_rank(key)
        self.mark_stale()

    def _update_rank(self, key: LineKey) -> None:
        """Move a job's line to its current place, or remove it when nothing in it waits."""
        line = self._lines.get(key)
        if line is None:
            return
        if line.account not in self._lanes:
            lane = Lane(limits.limiting_holders(self._people, line.account, "slots"))
            self._lanes[line.account] = lane
            if lane.holders:
                self._limited_lanes[line.account] = lane
        lane = self._lanes[line.account]
        first = next(line.requests(), None)
        held = self._held[first.group] if first is not None else 0
        rank = line.rank_of(self._books[line.pool], first, held) if first is not None else None
        lane.put(key, line, rank)
        if first is None:
            self._forget(key)
            if not lane:
                del self._lanes[line.account]
                self._limited_lanes.pop(line.account, None)

    def _forget(self, key: LineKey) -> None:
        del self._lines[key]
        mine = self._lines_of[key[1]]
        del mine[key]
        if not mine:
            del self._lines_of[key[1]]

    def update_books(self) -> None:
        """Bring the books up to date."""
        if not self._stale:
            return
        self._stale = False
        limit = limits.all_limits(self._people, "slots")
        admission = AdmissionPass(
            self._lines, self._books, self._held, limit, limits.usage_of(self._people, self.usage)
        )
        admission.run(self._limited_lanes.values())
        self.reserved = admission.reserved
        for id in self._admitted.keys() - admission.admitted.keys():
            self._books[self._waiting[id].pool].leave(id)
        for id, request in admission.admitted.items():
            self._books[self._waiting[id].pool].wait(request)
        self._admitted = dict.fromkeys(admission.admitted)

    def has_waiting(self, pool: str, group: str) -> bool:
        """Whether a request of a group that needs slots waits in a pool, admitted or not."""
        return any(line_pool == pool for line_pool, *_ in self._lines_of.get(group, ()))

    def not_admitted(self, pool: str) -> Iterator[Request]:
        """Yield the requests of a pool that are not admitted, in no particular order.

        Valid only after `update_books`.
        """
        if pool in self._limited:
            for key, line in self._lines.items():
                if key[0] == pool and key[2] in self._limited_lanes:
                    yield from (
                        request for request in line.requests() if request.allocation_id not in self._admitted
                    )

    def not_admitted_request(self, id: str) -> ChargedRequest | None:
        """Return the request if it waits and is not admitted, otherwise None."""
        placed = self._waiting.get(id)
        limited = placed is not None and placed.account in self._limited_lanes
        return placed if limited and id not in self._admitted else None
