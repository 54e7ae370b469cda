"""What the cluster is told of this worker itself: that it is here, with what, and that it lives."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Awaitable, Callable, Collection

import structlog

from det_contracts import subjects
from det_contracts.events.worker import Slot, WorkerLeft, WorkerRegistered
from det_contracts.limits import NAME_CHARACTERS, WORKER_SLOTS, is_name
from det_contracts.news import Holder
from det_contracts.orders import WorkerOrders
from services.kit.log import Draft, Log, NotConfirmed
from services.kit.settings import BadSettings
from worker.fact_outbox import draft
from worker.identity import Identity
from worker.settings import WorkerSettings

HEARTBEAT_S = 2.0
RETRY_S = 0.2
VERSION = "0.1.0"

log = structlog.get_logger()


class IdTaken(Exception):
    """Another worker of the same id is here; the text names it, and says what to do."""


def check_offer(settings: WorkerSettings) -> None:
    """Raise `BadSettings` for what a worker may not say of itself: nobody would tell it afterwards."""
    for variable, text in (("POOL", settings.worker_pool), ("ADDRESS", settings.worker_address)):
        if not is_name(text):
            many = f"STEADFAST_WORKER_{variable} has {len(text)} characters"
            raise BadSettings(f"{many}: at most {NAME_CHARACTERS} are taken")
    if settings.worker_slots > WORKER_SLOTS:
        most = f"a worker offers at most {WORKER_SLOTS} slots"
        raise BadSettings(f"STEADFAST_WORKER_SLOTS={settings.worker_slots}: {most}")


async def _nobody() -> None:
    return None


class Presence:
    """One worker, in one session after the other: a new one whenever it registers.

    Whether it has the id is decided where registrations are folded: of two that want it the first has it,
    until it leaves or is given up for lost. Its orders tell.
    """

    def __init__(
        self,
        me: Identity,
        pool: str,
        address: str,
        journal: Log,
        *,
        launcher: str = "process",
        holder: Callable[[], Awaitable[Holder | None]] = _nobody,
        new_session: Callable[[], str] = lambda: uuid.uuid4().hex[:12],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`holder` says who has the id, as far as that can be learned at once: who is refused says little."""
        self._me = me
        self._pool = pool
        self._address = address
        self._journal = journal
        self._launcher = launcher
        self._holder = holder
        self._new_session = new_session
        self._clock = clock
        self.session = ""
        self._sessions: set[str] = set()
        """All that it has said since its process began, answered or not."""

    def is_own(self, session: str) -> bool:
        """Whether this process has registered with a session, be it the newest or one before."""
        return session in self._sessions

    async def register(self, slots: tuple[Slot, ...], running: Collection[str], reads_after: int) -> None:
        """Offer slots, and say what runs; insists until that is stored. Raises `IdTaken`."""
        holder = await self._holder()
        if holder is not None and holder.here and self._is_another(holder):
            raise self._taken(holder.host, holder.address)
        self.session = self._new_session()
        self._sessions.add(self.session)
        registered = WorkerRegistered(
            worker_id=self._me.worker_id,
            instance=self._me.instance,
            host=self._me.host,
            session=self.session,
            pool=self._pool,
            address=self._address,
            version=VERSION,
            slots=slots,
            reads_after=reads_after,
            running=tuple(running),
            launcher=self._launcher,
        )
        stated = self._draft(registered)
        while True:
            try:
                await self._journal.append(stated)
                break
            except NotConfirmed as error:
                log.warning("register.again", error=str(error))
                await asyncio.sleep(RETRY_S)
        log.info("worker.registered", id=self._me.worker_id, slots=len(slots), runs=list(running))

    def check(self, orders: WorkerOrders) -> None:
        """Raise `IdTaken` where orders say that another worker has the id."""
        if orders.refused == self.session:
            raise self._taken(orders.host, orders.address)

    def _is_another(self, holder: Holder) -> bool:
        """Workers of earlier versions did not say who they are."""
        mine = self._me.instance, self._me.host
        return bool(holder.instance) and (holder.instance, holder.host or mine[1]) != mine

    def _taken(self, host: str, address: str) -> IdTaken:
        return IdTaken(
            f"the worker id '{self._me.worker_id}' is taken: another worker has it, on host {host} (address "
            f"{address}). Give this one, on host {self._me.host}, an id of its own (STEADFAST_WORKER_ID), "
            "or stop the other one. If that one is gone for good, start this one again: the id is free as "
            "soon as the scheduler has given the other up for lost"
        )

    async def leave(self) -> None:
        """Nothing of it runs any more; tries for 3 s to say so."""
        left = self._draft(WorkerLeft(self._me.worker_id, self.session))
        with contextlib.suppress(NotConfirmed, TimeoutError):
            async with asyncio.timeout(3):
                await self._journal.append(left)

    async def beat(self, publish: Callable[[str, bytes], Awaitable[None]]) -> None:
        """Give signs of life until cancelled."""
        subject = subjects.heartbeat(self._me.worker_id)
        while True:
            with contextlib.suppress(Exception):
                await publish(subject, self.session.encode())
            await asyncio.sleep(HEARTBEAT_S)

    def _draft(self, event: WorkerRegistered | WorkerLeft) -> Draft:
        return draft(self._me.worker_id, event, self._clock())
