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
        self._next: asyncio.Future[int] | None = None
        """The answer for those who came since the last question was sent: they need a newer one."""
        self._asking: asyncio.Task[None] | None = None

    async def position(self) -> int:
        """Where the log ended at some moment since this was called; 0 where the broker does not say."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask())
        # Whoever hangs up takes nobody else's answer along.
        return await asyncio.shield(self._next)

    async def _ask(self) -> None:
        try:
            while self._next is not None:
                answer, self._next = self._next, None
                try:
                    answer.set_result(await self._answer())
                except Exception as error:
                    # A defect is for those who asked: else they and all after them would wait for ever.
                    answer.set_exception(error)
        finally:
            self._asking = None

    async def _answer(self) -> int:
        try:
            return await self._end()
        except AWAY:
            return 0
