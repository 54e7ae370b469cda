"""Facts of which only the newest counts, such as progress."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from determined.transport.bus_thread import BusThread

T = TypeVar("T")
logger = logging.getLogger("determined.transport")


class Newest(Generic[T]):
    """Sends what it is told. While one is on its way, of those that come only the last is kept.

    So what a script tells in an outage, of hours perhaps, is two messages and no work.
    """

    def __init__(self, thread: BusThread, store: Callable[[T], Awaitable[None]], what: str) -> None:
        self._thread = thread
        self._store = store
        self._what = what
        self._next: T | None = None
        self._sending: asyncio.Task[None] | None = None

    def tell(self, fact: T) -> None:
        """Have it stored, sooner or later; returns at once. RuntimeError when the thread has ended."""
        self._thread.soon(self._take, fact)

    # Whatever follows runs in the loop of the thread.

    def _take(self, fact: T) -> None:
        self._next = fact
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        while self._next is not None:
            fact, self._next = self._next, None
            try:
                await self._store(fact)
            except Exception as error:
                logger.warning("telling %s failed and is left out: %s", self._what, error)
        self._sending = None
