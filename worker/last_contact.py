"""Records when this host was last in contact with the cluster, for the shims of runs that have a fence.

The worker writes the file and the shims read it. In contact means: at that moment the worker had acted on its
newest orders, and these did not declare it lost. So nothing that a shim still lets run has been started
elsewhere: after orders that declare the worker lost, the scheduler waits longer than the shims do.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import structlog

from services.kit.since_boot import since_boot

RENEW_S = 2.0
MAX_AGE_S = 2 * RENEW_S
FILE = "contact"

log = structlog.get_logger()


class Contact:
    """Keeps the file up to date while there is contact."""

    def __init__(
        self, current: Callable[[], Awaitable[bool]], record: Callable[[float], Awaitable[None]]
    ) -> None:
        """`current` asks whether all orders were acted on. `record` records seconds since boot.

        Both may take any time.
        """
        self._is_current = current
        self._record = record
        self._at = -math.inf
        self._renewed = asyncio.Event()

    async def wait_until_fresh(self) -> None:
        """Wait for a fresh contact: a run that is started without one would be ended at once."""
        while since_boot() - self._at > MAX_AGE_S:
            self._renewed.clear()
            await self._renewed.wait()

    async def run_forever(self) -> None:
        """Check for contact repeatedly, until cancelled."""
        while True:
            checked_at = since_boot()
            if await self._is_current():
                # The answer only covers the time up to the question.
                await self._record(checked_at)
                self._at = checked_at
                self._renewed.set()
            await asyncio.sleep(RENEW_S)


class ContactFile:
    """The time since boot in one short line, rewritten in place: a full disk must not end what runs."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        # A thread of its own: others may all be waiting for a slow disk, and then runs would be ended.
        self._writer = ThreadPoolExecutor(1, "contact")

    async def record_in_thread(self, at: float) -> None:
        """Record the time of the newest contact. A busy disk may take seconds for it."""
        await asyncio.get_running_loop().run_in_executor(self._writer, self.record, at)

    def record(self, at: float) -> None:
        """Record the time of the newest contact."""
        try:
            os.pwrite(self._file, f"{at:020.3f}\n".encode(), 0)
        except OSError as error:
            log.warning("contact.not_noted", error=str(error))
