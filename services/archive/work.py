"""What the archive does, again and again: seal what there is, then cut what may go."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping

import structlog

from services.archive.cutting import Cutter
from services.archive.sealing import Sealer
from services.kit.jetstream_feed import CANNOT_READ
from services.kit.log import FenceLost, LogError

AWAY = (*CANNOT_READ, LogError)
"""What may go wrong and be over the next time: the broker, the archive's place, or a person's to mend."""

log = structlog.get_logger()


class Work:
    """One replica of the archive. Several may run: one whose `leading()` is true works, the fence holds."""

    def __init__(
        self,
        sealer: Sealer,
        cutter: Cutter,
        saved: Callable[[], Awaitable[Mapping[str, int]]],
        *,
        look_s: float,
        leading: Callable[[], bool] = lambda: True,
    ) -> None:
        """`saved` asks how far each service has saved."""
        self._sealer = sealer
        self._cutter = cutter
        self._saved = saved
        self._look_s = look_s
        self._leading = leading
        self._lead = asyncio.Event()
        self.failure = ""
        """Why it could not do what there is to do; empty where it could."""
        self.archived = self.removed = 0
        """Up to where CONTROL lies in the archive, and is gone from the broker, as of the last look."""

    def lead(self) -> None:
        """Tell that leadership may have changed."""
        self._lead.set()

    async def run(self) -> None:
        """Work whenever this replica leads, until cancelled."""
        while True:
            if self._leading():
                await self.once()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._look_s):
                    await self._lead.wait()
            self._lead.clear()

    async def once(self) -> None:
        """Do all that there is to do just now; what goes wrong is told, and tried again the next time."""
        try:
            while self._leading() and await self._sealer.seal() is not None:
                pass
            self.archived = (await self._sealer.head()).last
            if self._leading():
                self.removed = await self._cutter.cut(await self._saved())
        except FenceLost:
            # Another replica has sealed it: what there is now is looked at the next time.
            return
        except AWAY as error:
            if self.failure != (said := str(error) or repr(error)):
                log.error("archive.failed", error=said)
            self.failure = said
            return
        self.failure = ""
