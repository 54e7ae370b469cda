"""Shares the event loop among users, so that no amount of data or requests of one delays another long.

Passing on 64 KiB takes a millisecond or more, and so does a request. A task may send, or a user ask, without
end. An answer to somebody else takes some dozens of iterations of the loop, so each of them must not wait for
a part of every stream, or for the beginning of every other request.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator

EVERY = 8
"""Iterations of the loop from one turn to the next. Where nothing else happens they take microseconds."""


PART_BYTES = 64 * 1024
"""What is passed on in one turn. Larger parts of a stream take several."""


class Turns:
    """Gives one turn every few iterations of the event loop, by users and then by the clients of each."""

    def __init__(self, every: int = EVERY) -> None:
        self._every = every
        self._waiting: OrderedDict[str, OrderedDict[str, deque[asyncio.Future[None]]]] = OrderedDict()
        """By user and client; those whose turn is next come first."""
        self._pause = 0
        """Iterations until the next turn."""
        self._armed = False

    async def take(self, user: str, client: str = "") -> None:
        """Wait for the next turn of a user. `client` is one of those who act for the user."""
        if not self._pause and not self._waiting:
            self._pause = self._every - 1
            self._arm()
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user, OrderedDict()).setdefault(client, deque()).append(turn)
        self._arm()
        await turn

    async def paced(self, parts: AsyncIterator[bytes], who: str) -> AsyncIterator[bytes]:
        """Yield parts, each one in its turn. The next is not asked for before."""
        async for part in parts:
            yield part
            await self.take(who)

    async def take_for(self, who: str, size: int, at_least: int = 0) -> int:
        """Wait for as many turns as there are parts in `size` bytes. Returns the bytes that fill no turn."""
        for _ in range(max(size // PART_BYTES, at_least)):
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
            user, clients = self._waiting.popitem(last=False)
            client, turns = clients.popitem(last=False)
            turn = turns.popleft()
            if turns:
                clients[client] = turns
            if clients:
                self._waiting[user] = clients
            if not turn.done():
                turn.set_result(None)
                return True
        return False
