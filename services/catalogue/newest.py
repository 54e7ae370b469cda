"""Where the log ends: what a replica must show so that nobody finds less here than they were told elsewhere.

Several gateways answer one client in turn. Whatever any of them acknowledged lies in the log by then, so who
has read the log to its end, as it was when a request came, shows it. One question to the broker serves all
requests that wait for it, so that many of them cost no more than a few.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from services.kit.log import OutcomeUnknown

AWAY = (OutcomeUnknown, TimeoutError, OSError)


class Newest:
    """Asks where CONTROL ends, one question at a time."""

    def __init__(self, end: Callable[[], Awaitable[int]]) -> None:
        """`end` asks the broker; raises what `AWAY` lists when that does not say."""
        self._end = end
        self._next: list[asyncio.Future[int]] = []
        """Those who came since the last question was sent: its answer may be older than they are."""
        self._asking: asyncio.Task[None] | None = None

    async def position(self) -> int:
        """Where the log ended at some moment since this was called; 0 where the broker does not say."""
        waiter = asyncio.get_running_loop().create_future()
        self._next.append(waiter)
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask())
        found: int = await waiter
        return found

    async def _ask(self) -> None:
        try:
            while self._next:
                waiting, self._next = self._next, []
                found = await self._answer()
                for waiter in waiting:
                    # Whoever hung up is done already.
                    if not waiter.done():
                        waiter.set_result(found)
        finally:
            self._asking = None

    async def _answer(self) -> int:
        try:
            return await self._end()
        except AWAY:
            return 0
