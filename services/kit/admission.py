"""Limits on concurrent work, in total and per user. Further requests wait or are told to retry."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from det_contracts.problems import Code, Problem, Refused
from services.kit.process_metrics import Reading

UNLIMITED = 1 << 62


class Busy(Refused):
    """No place is free; nothing was done."""

    def __init__(self, code: Code, message: str, retry_after_s: int) -> None:
        super().__init__(Problem(code, f"{message}; try again in {retry_after_s} s", retry_after_s))


def _decrement(counts: Counter[str], who: str) -> None:
    counts[who] -= 1
    if not counts[who]:
        del counts[who]


class Admission:
    """Places for one kind of work.

    A free place goes to the longest waiter who is below their own limit. A waiter may be cancelled at any
    moment; a place it was just given goes to the next.
    """

    def __init__(
        self,
        what: str,
        *,
        at_once: int,
        each: int,
        waiting: int = UNLIMITED,
        each_waiting: int = UNLIMITED,
        patience_s: float | None = None,
        retry_after_s: int = 5,
    ) -> None:
        """Set the limits: places in total and per user, waiters in total and per user, and the maximum wait.

        `what` is the plural name of the work, for refusals and metrics.
        """
        self.what = what
        self._at_once, self._each = at_once, each
        self._waiting, self._each_waiting = waiting, each_waiting
        self._patience_s, self._retry_after_s = patience_s, retry_after_s
        self._active: Counter[str] = Counter()
        self._total = 0
        self._queue: dict[asyncio.Future[None], str] = {}
        """Waiters in order of arrival."""
        self._queued_by_user: Counter[str] = Counter()

    @property
    def active(self) -> int:
        """Number of places taken."""
        return self._total

    @property
    def queued(self) -> int:
        """Number of waiters."""
        return len(self._queue)

    @asynccontextmanager
    async def hold(self, who: str) -> AsyncIterator[None]:
        """Hold a place inside the context.

        Raises `Busy` if too many are waiting or the wait takes too long.
        """
        await self.acquire(who)
        try:
            yield
        finally:
            self.release(who)

    async def acquire(self, who: str) -> None:
        """Take a place, to be given back with `release`. Raises `Busy`."""
        if self._has_place(who):
            self._grant(who)
            return
        if self._queued_by_user[who] >= self._each_waiting or len(self._queue) >= self._waiting:
            raise self._busy_error(who)
        waiter = asyncio.get_running_loop().create_future()
        self._queue[waiter] = who
        self._queued_by_user[who] += 1
        try:
            async with asyncio.timeout(self._patience_s):
                await waiter
        except TimeoutError:
            self._give_up(waiter, who)
            raise self._busy_error(who) from None
        except BaseException:
            self._give_up(waiter, who)
            raise

    def release(self, who: str) -> None:
        """Release a place."""
        self._total -= 1
        _decrement(self._active, who)
        self._admit_waiting()

    def _grant(self, who: str) -> None:
        self._total += 1
        self._active[who] += 1

    def _has_place(self, who: str) -> bool:
        return self._total < self._at_once and self._active[who] < self._each

    def _dequeue(self, waiter: asyncio.Future[None]) -> None:
        _decrement(self._queued_by_user, self._queue.pop(waiter))

    def _give_up(self, waiter: asyncio.Future[None], who: str) -> None:
        if waiter in self._queue:
            self._dequeue(waiter)
        else:
            # It was given a place at the same moment.
            self.release(who)

    def _admit_waiting(self) -> None:
        while self._total < self._at_once:
            # Not simply the first: one user's long queue would keep the places free that others may take.
            waiter = next((future for future, who in self._queue.items() if self._has_place(who)), None)
            if waiter is None:
                return
            # Granted here and not by the woken waiter, or a newcomer could take the place before it runs.
            self._grant(self._queue[waiter])
            self._dequeue(waiter)
            if not waiter.done():
                waiter.set_result(None)

    def _busy_error(self, who: str) -> Busy:
        own, again = self._active[who], self._retry_after_s
        if own >= self._each:
            return Busy("exhausted", f"you have {own} {self.what} already, the maximum per client", again)
        return Busy("unavailable", f"there are {self._total} {self.what} already, the maximum", again)

    def readings(self) -> Iterable[Reading]:
        """Prometheus readings."""
        for name, help, count in (
            ("places_taken", "Places taken, by kind of work", self.active),
            ("places_wanted", "Requests waiting for a place, by kind of work", self.queued),
        ):
            yield Reading(name, help, ("kind",), {(self.what,): count})
