"""Reports this worker to the cluster: that it is here, what it offers, and that it is alive."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Awaitable, Callable, Collection

import structlog

from det_contracts import subjects
from det_contracts.events.worker import Limit, Slot, WorkerLeft, WorkerRegistered
from det_contracts.limits import NAME_CHARACTERS, WORKER_SLOTS, is_name
from det_contracts.orders import WorkerOrders
from det_contracts.script_queries import Holder
from services.kit.log import Draft, Log, NotConfirmed
from services.kit.settings import BadSettings
from worker.fact_outbox import draft
from worker.identity import Identity
from worker.sessions import Sessions
from worker.settings import WorkerSettings

HEARTBEAT_S = 2.0
RETRY_S = 0.2
VERSION = "0.1.0"
"""Version of the platform, shown for each worker."""

log = structlog.get_logger()


class IdTaken(Exception):
    """Another worker with the same id is here; the text names it and says what to do."""


def check_offer(settings: WorkerSettings) -> None:
    """Raise `BadSettings` for values that a registration may not contain: nothing would report them later."""
    for variable, text in (("POOL", settings.worker_pool), ("ADDRESS", settings.worker_address)):
        if not is_name(text):
            many = f"STEADFAST_WORKER_{variable} has {len(text)} characters"
            raise BadSettings(f"{many}: at most {NAME_CHARACTERS} are taken")
    if settings.worker_slots > WORKER_SLOTS:
        most = f"a worker offers at most {WORKER_SLOTS} slots"
        raise BadSettings(f"STEADFAST_WORKER_SLOTS={settings.worker_slots}: {most}")


async def _no_holder() -> None:
    return None


class Presence:
    """A worker's registrations. Each one begins a new session.

    Which worker has the id is decided where registrations are folded: the first of two that claim it has it
    until it leaves or is declared lost. The orders tell the outcome.
    """

    def __init__(
        self,
        me: Identity,
        pool: str,
        address: str,
        journal: Log,
        sessions: Sessions,
        *,
        launcher: str = "process",
        limits: tuple[Limit, ...] = (),
        holder: Callable[[], Awaitable[Holder | None]] = _no_holder,
        new_session: Callable[[], str] = lambda: uuid.uuid4().hex[:12],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`holder` returns which worker has the id, if known now, because a refusal contains few details."""
        self._me = me
        self._pool = pool
        self._address = address
        self._journal = journal
        self._launcher = launcher
        self._limits = limits
        self._holder = holder
        self._new_session = new_session
        self._clock = clock
        self.session = ""
        self._sessions = sessions

    def is_own_session(self, session: str) -> bool:
        """Whether this process, or one before it, has registered with a session, answered or not."""
        return session in self._sessions

    async def register(self, slots: tuple[Slot, ...], running: Collection[str], reads_after: int) -> None:
        """Offer slots and report what runs; retries until that is stored. Raises `IdTaken`."""
        holder = await self._holder()
        # Asked first only for a better error: the outcome is decided in the fold, and the orders tell it.
        if holder is not None and holder.here and self._is_another(holder):
            raise self._id_taken_error(holder.host, holder.address)
        self.session = self._new_session()
        # Remembered before it is sent: an answer to a registration that seemed to be lost may still arrive.
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
            limits=self._limits,
        )
        message = self._draft(registered)
        while True:
            try:
                await self._journal.append(message)
                break
            except NotConfirmed as error:
                log.warning("register.again", error=str(error))
                await asyncio.sleep(RETRY_S)
        log.info("worker.registered", id=self._me.worker_id, slots=len(slots), runs=list(running))

    def raise_if_refused(self, orders: WorkerOrders) -> None:
        """Raise `IdTaken` if the orders say that another worker has the id."""
        if orders.refused == self.session:
            raise self._id_taken_error(orders.host, orders.address)

    def _is_another(self, holder: Holder) -> bool:
        """Workers of earlier versions did not identify themselves."""
        mine = self._me.instance, self._me.host
        return bool(holder.instance) and (holder.instance, holder.host or mine[1]) != mine

    def _id_taken_error(self, host: str, address: str) -> IdTaken:
        return IdTaken(
            f"the worker id '{self._me.worker_id}' is taken: another worker has it, on host {host} (address "
            f"{address}). Give this one, on host {self._me.host}, an id of its own (STEADFAST_WORKER_ID), "
            "or stop the other one. If that one is gone for good, start this one again: the id is free as "
            "soon as the scheduler has given the other up for lost"
        )

    async def leave(self) -> None:
        """Report that nothing runs here any more; gives up after 3 s."""
        left = self._draft(WorkerLeft(self._me.worker_id, self.session))
        with contextlib.suppress(NotConfirmed, TimeoutError):
            # A worker that is being stopped must not wait for a broker that is away; the monitor notices its
            # silence.
            async with asyncio.timeout(3):
                await self._journal.append(left)

    async def send_heartbeats(self, publish: Callable[[str, bytes], Awaitable[None]]) -> None:
        """Send heartbeats until cancelled."""
        subject = subjects.heartbeat(self._me.worker_id)
        while True:
            # A heartbeat that is missed is followed by another. One that ended this loop would end every run
            # here.
            with contextlib.suppress(Exception):
                await publish(subject, self.session.encode())
            await asyncio.sleep(HEARTBEAT_S)

    def _draft(self, event: WorkerRegistered | WorkerLeft) -> Draft:
        return draft(self._me.worker_id, event, self._clock())
