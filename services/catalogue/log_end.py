"""Finds the end of the log, up to which a replica must read before it answers.

Several gateways answer one client in turn. Whatever any of them has acknowledged is in the log, so a gateway
that has read the log to its end, as of the time of the request, shows at least that. One query to the broker
serves all waiting requests, so many requests cost only a few queries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from services.kit.log import OutcomeUnknown

UNREACHABLE_ERRORS = (OutcomeUnknown, TimeoutError, OSError)


class LogEnd:
    """Finds the end of CONTROL, with one query at a time."""

    def __init__(self, end: Callable[[], Awaitable[int]]) -> None:
        """`end` asks the broker, and raises one of `UNREACHABLE_ERRORS` if the end cannot be determined."""
        self._end = end
        self._next: asyncio.Future[int] | None = None
        """The answer for callers since the last query was sent. They need a newer one."""
        self._query_task: asyncio.Task[None] | None = None

    async def position(self) -> int:
        """The end of the log at some moment after this call; 0 if the broker does not answer."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        if self._query_task is None:
            self._query_task = asyncio.create_task(self._run_queries())
        # The future is shared, so a cancelled caller must not cancel it for the others.
        return await asyncio.shield(self._next)

    async def _run_queries(self) -> None:
        try:
            while self._next is not None:
                # Whoever calls from here on gets a new future: this query's answer may be older than what
                # such a caller has already been shown.
                answer, self._next = self._next, None
                try:
                    answer.set_result(await self._query_end())
                except Exception as error:
                    # Pass a defect on to the callers; otherwise they and all later ones would wait forever.
                    answer.set_exception(error)
        finally:
            self._query_task = None

    async def _query_end(self) -> int:
        try:
            return await self._end()
        except UNREACHABLE_ERRORS:
            return 0
