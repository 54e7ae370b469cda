"""The gate before the books: of what quotas limit, only so much is let in as its quotas have slots for.

What is kept outside is in no book, so policies give shares, order and preempt among what may run, and
know nothing of quotas. Who is let in follows from the records alone (`letting_in.py`), and is worked out
when a pass or a person asks. An event changes sums, and one place in one lane.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from services.kit.authz.people import People
from services.kit.quotas import limits
from services.kit.quotas.usage import Account, Usage
from services.scheduler.domain.letting_in import Lane, LettingIn, Line, LineKey
from services.scheduler.policy.book import Book
from services.scheduler.policy.group_queue import size_of
from services.scheduler.policy.records import Request


class Placed(msgspec.Struct, frozen=True):
    """A request that waits or holds slots, and on whose account."""

    pool: str
    request: Request
    account: Account

    @property
    def line(self) -> LineKey:
        """Where it waits."""
        return self.pool, self.request.group, self.account, size_of(self.request)


class Gate:
    """See the module."""

    def __init__(self, people: People, books: Mapping[str, Book]) -> None:
        self.usage = Usage()
        """Slots that are held, by allocation."""
        self.kept: dict[str, list[str]] = {}
        """Holder of a quota -> requests for which the rest of its slots is kept; as of the last look."""
        self._people = people
        self._books = books
        self._waiting: dict[str, Placed] = {}
        self._running: dict[str, Placed] = {}
        self._lines: dict[LineKey, Line] = {}
        self._lines_of: dict[str, dict[LineKey, None]] = {}
        """Of each job."""
        self._lanes: dict[Account, Lane] = {}
        self._bound: dict[Account, Lane] = {}
        """Those lanes that quotas limit."""
        self._held: Counter[str] = Counter()
        """Slots of each job."""
        self._let_in: dict[str, None] = {}
        """Of the limited requests those that are in a book."""
        self._limited: Counter[str] = Counter()
        """How many limited requests wait in each pool, let in or not."""
        self._stale = False

    def wait(self, pool: str, request: Request, account: Account) -> None:
        """A request waits for slots, or waits on with other wishes."""
        id, placed = request.allocation_id, Placed(pool, request, account)
        if self._waiting.get(id) != placed:
            self.leave(id)
            self._waiting[id] = placed
            line = self._lines.get(placed.line)
            if line is None:
                line = self._lines[placed.line] = Line(pool, account, size_of(request))
                self._lines_of.setdefault(request.group, {})[placed.line] = None
            line.queue.wait(request)
            self._rank(placed.line)
            if self._lanes[account].holders:
                self._limited[pool] += 1
            else:
                self._books[pool].wait(request)
        self._rank(placed.line)
        self.stir()

    def run(self, pool: str, request: Request, account: Account) -> None:
        """A request holds slots; what it does in its book is said by others."""
        id, placed = request.allocation_id, Placed(pool, request, account)
        if self._running.get(id) != placed:
            self.leave(id)
            self._running[id] = placed
            self.usage.put(id, account, request.slots)
            self._hold(placed, request.slots)

    def leave(self, id: str) -> None:
        """Forget a request; one that is not known is nothing."""
        waited, ran = self._waiting.pop(id, None), self._running.pop(id, None)
        if waited is not None:
            self._let_in.pop(id, None)
            if self._lanes[waited.account].holders:
                self._count(waited.pool, -1)
            self._books[waited.pool].leave(id)
            self._lines[waited.line].queue.unwait(waited.request)
            self._rank(waited.line)
        if ran is not None:
            self.usage.drop(id)
            self._hold(ran, -ran.request.slots)
        self.stir()

    def stir(self) -> None:
        """Something changed that those who wait outside may depend on."""
        self._stale = self._stale or bool(self._limited)

    def pools(self) -> Iterable[str]:
        """The pools in which somebody who is limited waits: who is let in there may be another one now."""
        return self._limited.keys()

    def limits_changed(self) -> None:
        """Quotas, groups, or where projects are: look anew at who is limited by what."""
        for account, lane in list(self._lanes.items()):
            holders = limits.limiting(self._people, account, "slots")
            was, lane.holders = bool(lane.holders), holders
            if was != bool(holders):
                self._switch(account, lane)
        self.stir()

    def settings_changed(self) -> None:
        """A pool has another policy, so those who wait may be in another order."""
        for key in list(self._lines):
            self._rank(key)
        self.stir()

    def _switch(self, account: Account, lane: Lane) -> None:
        """A lane that was not limited is, or the other way round."""
        # What is in a book stays there until it is settled.
        if lane.holders:
            self._bound[account] = lane
        else:
            del self._bound[account]
        for key in lane.lines():
            for request in self._lines[key].requests():
                self._count(key[0], 1 if lane.holders else -1)
                if lane.holders:
                    self._let_in[request.allocation_id] = None
                else:
                    self._let_in.pop(request.allocation_id, None)
                    self._books[key[0]].wait(request)

    def _count(self, pool: str, change: int) -> None:
        self._limited[pool] += change
        if not self._limited[pool]:
            del self._limited[pool]

    def _hold(self, placed: Placed, slots: int) -> None:
        group = placed.request.group
        self._held[group] += slots
        if not self._held[group]:
            del self._held[group]
        for key in list(self._lines_of.get(group, ())):
            self._rank(key)
        self.stir()

    def _rank(self, key: LineKey) -> None:
        """Put a job's line where it belongs now, or take it out when nothing of it waits."""
        line = self._lines.get(key)
        if line is None:
            return
        if line.account not in self._lanes:
            lane = Lane(limits.limiting(self._people, line.account, "slots"))
            self._lanes[line.account] = lane
            if lane.holders:
                self._bound[line.account] = lane
        lane = self._lanes[line.account]
        first = next(line.requests(), None)
        held = self._held[first.group] if first is not None else 0
        rank = line.rank_of(self._books[line.pool], first, held) if first is not None else None
        lane.put(key, line, rank)
        if first is None:
            self._forget(key)
            if not lane:
                del self._lanes[line.account]
                self._bound.pop(line.account, None)

    def _forget(self, key: LineKey) -> None:
        del self._lines[key]
        mine = self._lines_of[key[1]]
        del mine[key]
        if not mine:
            del self._lines_of[key[1]]

    def settle(self) -> None:
        """Bring the books up to date."""
        if not self._stale:
            return
        self._stale = False
        limit = limits.of_all(self._people, "slots")
        look = LettingIn(self._lines, self._books, self._held, limit, limits.used(self._people, self.usage))
        look.run(self._bound.values())
        self.kept = look.kept
        for id in self._let_in.keys() - look.found.keys():
            self._books[self._waiting[id].pool].leave(id)
        for id, request in look.found.items():
            self._books[self._waiting[id].pool].wait(request)
        self._let_in = dict.fromkeys(look.found)

    def outside(self, pool: str) -> Iterator[Request]:
        """The requests of a pool that are kept out, in no order; only right once it is settled."""
        if pool in self._limited:
            for key, line in self._lines.items():
                if key[0] == pool and key[2] in self._bound:
                    yield from (one for one in line.requests() if one.allocation_id not in self._let_in)

    def outsider(self, id: str) -> Placed | None:
        """A request that is kept out."""
        placed = self._waiting.get(id)
        limited = placed is not None and placed.account in self._bound
        return placed if limited and id not in self._let_in else None
