"""The archive's main loop: seal what is available, then cut what may go."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping

import structlog

from services.archive.cutting import Cutter
from services.archive.sealing import Sealer
from services.kit.jetstream_feed import READ_ERRORS
from services.kit.log import FenceLost, LogError

RETRYABLE_ERRORS = (*READ_ERRORS, LogError)
"""Errors after which to try again: the broker or the archive's storage is away, or an operator must act."""

log = structlog.get_logger()


class Archiver:
    """One replica of the archive.

    Of several, the one whose `is_leader()` is true works; the fence ensures this.
    """

    def __init__(
        self,
        sealer: Sealer,
        cutter: Cutter,
        saved: Callable[[], Awaitable[Mapping[str, int]]],
        *,
        interval_s: float,
        is_leader: Callable[[], bool] = lambda: True,
    ) -> None:
        """`saved` returns how far each service has saved."""
        self._sealer = sealer
        self._cutter = cutter
        self._saved = saved
        self._interval_s = interval_s
        self._is_leader = is_leader
        self._lead = asyncio.Event()
        self.failure = ""
        """Why the last attempt failed; empty if it succeeded."""
        self.archived = self.removed = 0
        """Positions up to which CONTROL is archived, and removed from the broker, as of the last look."""

    def on_leadership_change(self) -> None:
        """Tell the archive that leadership may have changed."""
        self._lead.set()

    async def run(self) -> None:
        """Work whenever this replica leads, until cancelled."""
        while True:
            if self._is_leader():
                await self.run_once()
            else:
                # The replica that leads reports how it goes.
                self.failure = ""
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._interval_s):
                    await self._lead.wait()
            self._lead.clear()

    async def run_once(self) -> None:
        """Do everything that is possible now. Failures are logged and retried the next time."""
        try:
            # As many as there are: after a long outage of the archive many segments may be due.
            while self._is_leader() and await self._sealer.seal() is not None:
                pass
            self.archived = (await self._sealer.head()).last
            if self._is_leader():
                self.removed = await self._cutter.cut(await self._saved())
        except FenceLost:
            # Another replica has sealed the segment; look again the next time.
            return
        except RETRYABLE_ERRORS as error:
            if self.failure != (message := str(error) or repr(error)):
                log.error("archive.failed", error=message)
            self.failure = message
            return
        self.failure = ""
