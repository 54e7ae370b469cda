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
from services.provisioner.engines.protocol import Engine, EngineUnavailable
from services.provisioner.plan import DesiredPool
from services.provisioner.reconciliation import reconcile_pool

log = structlog.get_logger()
DEBOUNCE_S = 0.5


class SchedulerClient(Protocol):
    """Reaches the scheduler: `services.kit.bus.BusClient`, or a test double."""

    async def command(self, command: Any) -> Answer:
        """Send a command. Raises `Refused`."""

    async def query(self, query: Any) -> Answer:
        """Send a query. Raises `Refused`."""


class Reconciler:
    """One replica of the provisioner. Several may run; the one whose `is_leader()` is true works."""

    def __init__(
        self,
        engines: Mapping[str, Engine],
        bus_client: SchedulerClient,
        *,
        poll_s: float,
        is_leader: Callable[[], bool],
    ) -> None:
        """`engines` by pool. `poll_s` is the time between checks when nothing happens, in seconds."""
        self._engines = engines
        self._bus_client = bus_client
        self._poll_s = poll_s
        self._is_leader = is_leader
        self._wake = asyncio.Event()
        self.problems: dict[str, str] = {}
        """Pools whose engines are unavailable, and why."""
        self.completed_checks = 0

    def on_leadership_change(self) -> None:
        """Check at once: leadership may have changed, or the scheduler has decided something."""
        self._wake.set()

    async def run(self) -> None:
        """Work whenever this replica leads, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._reconcile_forever())
            for engine in self._engines.values():
                tasks.create_task(self._watch_engine(engine))

    async def _watch_engine(self, engine: Engine) -> None:
        """Check as soon as an engine reports a change. This is only a hint on which nothing depends."""
        while True:
            try:
                await engine.wait_for_change()
                self._wake.set()
                # Simultaneous changes, such as those of all pods of a node, lead to a single check.
                await asyncio.sleep(DEBOUNCE_S)
            except EngineUnavailable:
                await asyncio.sleep(self._poll_s)
            except Exception:
                log.exception("engine.cannot_tell")
                await asyncio.sleep(self._poll_s)

    async def _reconcile_forever(self) -> None:
        while True:
            if self._is_leader():
                await asyncio.gather(*(self._reconcile(pool) for pool in self._engines))
                self.completed_checks += 1
            else:
                # The replica that leads reports how it goes.
                self.problems = {}
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._poll_s):
                    await self._wake.wait()
            self._wake.clear()

    async def _reconcile(self, pool: str) -> None:
        """Check a pool. Errors are reported, and the next check tries again."""
        try:
            problem = await reconcile_pool(
                pool, self._engines[pool], lambda: self._query_desired(pool), self._bus_client.command
            )
        except Refused as error:
            problem = f"the scheduler: {error}"
        except Exception as error:
            # One pool that fails must not keep the others from growing.
            log.exception("pool.failed", pool=pool)
            problem = repr(error)
        if problem and self.problems.get(pool) != problem:
            log.warning("pool.problem", pool=pool, problem=problem)
        self.problems |= {pool: problem}

    async def _query_desired(self, pool: str) -> DesiredPool:
        answer = await self._bus_client.query(Provisioning(pool=pool))
        return next(iter(msgspec.convert(answer.value, list[DesiredPool])), DesiredPool(pool=pool))
