"""Waiting for a growing position: of a folded stream, or of a database behind it."""

from __future__ import annotations

import asyncio
import heapq


class AwaitablePosition:
    """A position, and a future for each task that waits for it.

    Waiters may be cancelled at any moment, even repeatedly, because no lock is held. Only waiters whose
    position is reached are woken.
    """

    def __init__(self, position: int = 0) -> None:
        self.position = position
        self._waiting: dict[int, dict[asyncio.Future[None], None]] = {}
        self._marks: list[int] = []
        """The keys of `_waiting`, as a heap."""

    def advance(self, position: int) -> None:
        """Advance the position and wake those whose position is reached."""
        if position > self.position:
            self.position = position
        while self._marks and self._marks[0] <= self.position:
            for waiter in self._waiting.pop(heapq.heappop(self._marks)):
                if not waiter.done():
                    waiter.set_result(None)

    def begin(self, position: int) -> None:
        """Begin again at a position, which may be an earlier one."""
        self.position = position
        self.advance(position)

    async def wait_for_position(self, position: int) -> None:
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
            # Only the waiter: its position stays in the heap until it is reached, because a heap cannot drop
            # an inner entry cheaply.
            del waiters[waiter]
