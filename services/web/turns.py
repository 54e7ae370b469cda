"""Shares the event loop among data that is passed on, so that no amount of it delays anything long.

Passing on 64 KiB takes a millisecond or more, and a task may send, or a user download, without end. An
answer to somebody else takes some dozens of iterations of the loop, so each of them must not wait for a part
of every such stream.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator

EVERY = 8
"""Iterations of the loop from one part to the next. Where nothing else happens they take microseconds."""


PART_BYTES = 64 * 1024
"""What is passed on in one turn. Larger parts of a stream take several."""


class DataTurns:
    """Lets one part of data through every few iterations of the event loop; users take turns."""

    def __init__(self, every: int = EVERY) -> None:
        self._every = every
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """By user; the one whose turn is next comes first."""
        self._pause = 0
        """Iterations until the next turn."""
        self._armed = False

    async def take(self, who: str) -> None:
        """Wait for the next turn of a user."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(who, deque()).append(turn)
        self._arm()
        await turn

    async def paced(self, parts: AsyncIterator[bytes], who: str) -> AsyncIterator[bytes]:
        """Yield parts, each one in its turn. The next is not asked for before."""
        async for part in parts:
            yield part
            await self.take(who)

    async def take_for(self, who: str, size: int) -> int:
        """Wait for as many turns as there are parts in `size` bytes. Returns the bytes that fill no turn."""
        for _ in range(size // PART_BYTES):
            await self.take(who)
        return size % PART_BYTES

    def _arm(self) -> None:
        if not self._armed:
            self._armed = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        self._armed = False
        if self._pause:
            self._pause -= 1
        elif self._grant():
            self._pause = self._every - 1
        if self._pause or self._waiting:
            self._arm()

    def _grant(self) -> bool:
        """Give the next turn. Returns whether anybody took it: a cancelled waiter uses up none."""
        while self._waiting:
            who, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[who] = turns
            if not turn.done():
                turn.set_result(None)
                return True
        return False
