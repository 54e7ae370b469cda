"""When this host was last in touch with the cluster, for the shims of runs that must not outlive that.

The file is written by the worker and read by shims. In touch means: at that moment the newest orders for this
worker were those that it had acted on, and they did not say that it was given up for lost. So whatever a
shim lets run is not yet started elsewhere: the scheduler waits for longer than shims do, from such orders on.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import structlog

from services.kit.since_boot import since_boot

RENEW_S = 2.0
FRESH_S = 2 * RENEW_S
FILE = "contact"

log = structlog.get_logger()


class Contact:
    """Keeps the file up to date for as long as there is contact."""

    def __init__(self, current: Callable[[], Awaitable[bool]], note: Callable[[float], None]) -> None:
        """`current` asks whether all orders were acted on, for as long as it takes; `note` keeps seconds
        since boot."""
        self._is_current = current
        self._note = note
        self._at = -math.inf
        self._renewed = asyncio.Event()

    async def fresh(self) -> None:
        """Wait until there was contact just now: what is begun without would be ended as soon as it began."""
        while since_boot() - self._at > FRESH_S:
            self._renewed.clear()
            await self._renewed.wait()

    async def keep(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            asked_at = since_boot()
            if await self._is_current():
                # What was asked before the answer came is all that it vouches for.
                self._at = asked_at
                self._note(asked_at)
                self._renewed.set()
            await asyncio.sleep(RENEW_S)


class ContactFile:
    """Seconds since boot in one short line, rewritten in place: a full disk must not end what runs."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)

    def note(self, at: float) -> None:
        """Keep the time of the newest contact."""
        try:
            os.pwrite(self._file, f"{at:020.3f}\n".encode(), 0)
        except OSError as error:
            log.warning("contact.not_noted", error=str(error))
