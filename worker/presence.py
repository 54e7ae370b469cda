"""What the cluster is told of this worker itself: that it is here, with what, and that it lives."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

import msgspec
import structlog

from det_contracts import codec, subjects
from det_contracts.events.worker import Slot, WorkerLeft, WorkerRegistered
from services.kit.log import Draft, Log, NotConfirmed, Stored
from worker.identity import Identity
from worker.stating import draft

HEARTBEAT_S = 2.0
RETRY_S = 0.2
LOOK_S = 0.02
"""How often is looked whether a registration has reached the log."""
ADMITTED_S = 5.0
"""How long that is waited for before it is stated again."""
VERSION = "0.1.0"
E = TypeVar("E")

log = structlog.get_logger()


class IdTaken(Exception):
    """Another worker of the same id is here; the text names it, and says what to do."""


class Presence:
    """One worker, in one session after the other: a new one whenever it registers.

    A registration names the one before, whoever's it was: of two that want the same id the intake admits one
    only, and the other looks again.
    """

    def __init__(
        self,
        me: Identity,
        pool: str,
        address: str,
        journal: Log,
        *,
        new_session: Callable[[], str] = lambda: uuid.uuid4().hex[:12],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._me = me
        self._pool = pool
        self._address = address
        self._journal = journal
        self._new_session = new_session
        self._clock = clock
        self.session = ""
        self.position = 0
        """In the log, of the last registration."""

    async def register(self, slots: tuple[Slot, ...], running: Collection[str], reads_after: int) -> None:
        """Offer slots, and say what runs; insists until the log has it. Raises `IdTaken`."""
        self.session = self._new_session()
        offered = WorkerRegistered(
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
        )
        while True:
            if await self._is_in_place(offered):
                break
            await asyncio.sleep(RETRY_S)
        log.info("worker.registered", id=self._me.worker_id, slots=len(slots), runs=list(running))

    async def _is_in_place(self, offered: WorkerRegistered) -> bool:
        """Try once; whether the log has it. Where not, another one may have been there meanwhile."""
        before = await self._newest()
        if self._is_mine(before):
            return True
        known = _decoded(before, WorkerRegistered)
        if before is not None and known is not None and self._is_another(known):
            await self._must_be_gone(known, before.position)
        replaces = before.position if before is not None else 0
        stated = self._draft(msgspec.structs.replace(offered, replaces=replaces))
        while True:
            try:
                await self._journal.append(stated)
            except NotConfirmed as error:
                log.warning("register.again", error=str(error))
                return False
            if await self._has_moved(replaces):
                return self._is_mine(await self._newest())
            # The intake may be away; what was stated long ago may have been refused.
            log.warning("register.awaited", id=self._me.worker_id)

    async def _newest(self) -> Stored | None:
        return await self._journal.last(subjects.control("worker.registered", self._me.worker_id))

    async def _has_moved(self, before: int) -> bool:
        """Whether another registration of this id gets into the log within a while."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ADMITTED_S):
                while True:
                    newest = await self._newest()
                    if newest is not None and newest.position != before:
                        return True
                    await asyncio.sleep(LOOK_S)
        return False

    def _is_mine(self, newest: Stored | None) -> bool:
        """Whether a registration is that of this session; its position is kept then."""
        known = _decoded(newest, WorkerRegistered)
        if newest is None or known is None or known.session != self.session:
            return False
        self.position = newest.position
        return True

    def _is_another(self, known: WorkerRegistered) -> bool:
        """Workers of earlier versions did not say who they are."""
        return bool(known.instance) and (known.instance, known.host) != (self._me.instance, self._me.host)

    async def _must_be_gone(self, other: WorkerRegistered, since: int) -> None:
        id = other.worker_id
        left = await self._journal.last(subjects.control("worker.left", id))
        lost = await self._journal.last(subjects.control("scheduler.worker.lost", id))
        went = _decoded(left, WorkerLeft)
        if (lost is not None and lost.position > since) or (
            went is not None and went.session == other.session
        ):
            return
        raise IdTaken(
            f"the worker id '{id}' is taken: another worker has it, on host {other.host} (address "
            f"{other.address}). Give this one, on host {self._me.host}, an id of its own "
            "(STEADFAST_WORKER_ID), or stop the other one. If that one is gone for good, start this one "
            "again: the id is free as soon as the scheduler has given the other up for lost"
        )

    def replaced_by(self, other: WorkerRegistered, position: int) -> bool:
        """Whether another process has registered after this one, as a copy of its folder may."""
        return position > self.position and other.session != self.session

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


def _decoded(stored: Stored | None, kind: type[E]) -> E | None:
    if stored is None:
        return None
    event = codec.read(stored.subject, stored.body, stored.position).event
    return event if isinstance(event, kind) else None
