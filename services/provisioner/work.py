"""The provisioner's work while it leads: it checks each pool repeatedly."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec
import structlog

from det_contracts.commands import Answer
from det_contracts.problems import Refused
from det_contracts.queries import Provisioning
from services.provisioner.engines.protocol import Engine, EngineAway
from services.provisioner.plan import Wish
from services.provisioner.rounds import look_once

log = structlog.get_logger()
TOGETHER_S = 0.5


class Asks(Protocol):
    """Reaches the scheduler: `services.kit.bus.Asker`, or a test double."""

    async def command(self, command: Any) -> Answer:
        """Send a command. Raises `Refused`."""

    async def query(self, query: Any) -> Answer:
        """Send a query. Raises `Refused`."""


class Work:
    """One replica of the provisioner. Several may run; the one whose `leading()` is true works."""

    def __init__(
        self, engines: Mapping[str, Engine], asker: Asks, *, look_s: float, leading: Callable[[], bool]
    ) -> None:
        """`engines` by pool. `look_s` is the time between checks when nothing happens, in seconds."""
        self._engines = engines
        self._asker = asker
        self._look_s = look_s
        self._leading = leading
        self._wake = asyncio.Event()
        self.problems: dict[str, str] = {}
        """Pools whose engines are unavailable, and why."""
        self.looks = 0

    def lead(self) -> None:
        """Check at once: leadership may have changed, or the scheduler has decided something."""
        self._wake.set()

    async def run(self) -> None:
        """Work whenever this replica leads, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._work())
            for engine in self._engines.values():
                tasks.create_task(self._hear(engine))

    async def _hear(self, engine: Engine) -> None:
        """Check as soon as an engine reports a change. This is only a hint on which nothing depends."""
        while True:
            try:
                await engine.changed()
                self._wake.set()
                # Simultaneous changes, such as those of all pods of a node, lead to a single check.
                await asyncio.sleep(TOGETHER_S)
            except EngineAway:
                await asyncio.sleep(self._look_s)
            except Exception:
                log.exception("engine.cannot_tell")
                await asyncio.sleep(self._look_s)

    async def _work(self) -> None:
        while True:
            if self._leading():
                await asyncio.gather(*(self._look(pool) for pool in self._engines))
                self.looks += 1
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._look_s):
                    await self._wake.wait()
            self._wake.clear()

    async def _look(self, pool: str) -> None:
        """Check a pool. Errors are reported, and the next check tries again."""
        try:
            problem = await look_once(
                pool, self._engines[pool], lambda: self._wish(pool), self._asker.command
            )
        except Refused as error:
            problem = f"the scheduler: {error}"
        except Exception as error:
            log.exception("pool.failed", pool=pool)
            problem = repr(error)
        if problem and self.problems.get(pool) != problem:
            log.warning("pool.problem", pool=pool, problem=problem)
        self.problems |= {pool: problem}

    async def _wish(self, pool: str) -> Wish:
        answer = await self._asker.query(Provisioning(pool=pool))
        return next(iter(msgspec.convert(answer.value, list[Wish])), Wish(pool=pool))
