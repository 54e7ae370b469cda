"""Sends facts of which only the latest matters, such as progress."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from determined.transport.bus_thread import BusThread

T = TypeVar("T")
logger = logging.getLogger("determined.transport")


class Newest(Generic[T]):
    """Sends facts one at a time. While one is being sent, only the latest new one is kept.

    In an outage, even of hours, this results in only two messages.
    """

    def __init__(self, thread: BusThread, store: Callable[[T], Awaitable[None]], what: str) -> None:
        self._thread = thread
        self._store = store
        self._what = what
        self._next: T | None = None
        self._sending: asyncio.Task[None] | None = None

    def tell(self, fact: T) -> None:
        """Queue a fact and return immediately. Raises RuntimeError if the thread has ended."""
        self._thread.soon(self._take, fact)

    # Everything below runs in the thread's event loop.

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
                logger.warning("sending %s failed and is skipped: %s", self._what, error)
        self._sending = None
