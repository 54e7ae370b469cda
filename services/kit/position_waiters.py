"""Waiting for a position that grows: of a folded stream, or of a database behind it."""

from __future__ import annotations

import asyncio
import heapq


class Reached:
    """A position, and a future for each task that waits until it is somewhere.

    Waiters may be cancelled at any moment, and again while they are: there is no lock that could stay held.
    Only those are woken whose position has come.
    """

    def __init__(self, position: int = 0) -> None:
        self.position = position
        self._waiting: dict[int, dict[asyncio.Future[None], None]] = {}
        self._marks: list[int] = []
        """The keys of `_waiting`, as a heap."""

    def move(self, position: int) -> None:
        """Wake those who wait for what is reached now."""
        if position > self.position:
            self.position = position
        while self._marks and self._marks[0] <= self.position:
            for waiter in self._waiting.pop(heapq.heappop(self._marks)):
                if not waiter.done():
                    waiter.set_result(None)

    async def reach(self, position: int) -> None:
        """Wait until the position is at least this."""
        if self.position >= position:
            return
        if position not in self._waiting:
            self._waiting[position] = {}
            heapq.heappush(self._marks, position)
        waiters = self._waiting[position]
        waiter = asyncio.get_running_loop().create_future()
        waiters[waiter] = None
        try:
            await waiter
        finally:
            del waiters[waiter]
