"""What the cluster is told of this worker itself: that it is here, with what, and that it lives."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Awaitable, Callable, Collection
from typing import Any

import structlog

from det_contracts import codec, subjects
from det_contracts.events.worker import Slot, WorkerLeft, WorkerRegistered
from services.kit.log import Draft, Log, NotConfirmed

HEARTBEAT_S = 2.0
VERSION = "0.1.0"

log = structlog.get_logger()


class Presence:
    """One worker, in one session after the other: a new one whenever it registers."""

    def __init__(self, worker_id: str, pool: str, address: str, journal: Log) -> None:
        self._worker_id = worker_id
        self._pool = pool
        self._address = address
        self._journal = journal
        self._session = ""
        self.position = 0
        """In the log, of the last registration."""

    async def register(self, slots: tuple[Slot, ...], running: Collection[str], reads_after: int) -> None:
        """Offer slots, and say what runs; insists until the log has it."""
        self._session = uuid.uuid4().hex[:12]
        registered = WorkerRegistered(
            worker_id=self._worker_id,
            session=self._session,
            pool=self._pool,
            address=self._address,
            version=VERSION,
            slots=slots,
            reads_after=reads_after,
            running=tuple(running),
        )
        while True:
            try:
                self.position = await self._state(registered)
                break
            except NotConfirmed as error:
                log.warning("register.again", error=str(error))
        log.info("worker.registered", id=self._worker_id, slots=len(slots), runs=list(running))

    async def leave(self) -> None:
        """Nothing of it runs any more; tries for 3 s to say so."""
        with contextlib.suppress(NotConfirmed, TimeoutError):
            async with asyncio.timeout(3):
                await self._state(WorkerLeft(self._worker_id, self._session))

    async def beat(self, publish: Callable[[str, bytes], Awaitable[None]]) -> None:
        """Give signs of life until cancelled."""
        subject = subjects.heartbeat(self._worker_id)
        while True:
            with contextlib.suppress(Exception):
                await publish(subject, self._session.encode())
            await asyncio.sleep(HEARTBEAT_S)

    async def _state(self, event: Any) -> int:
        id = f"{codec.kind_of(event).name}-{self._worker_id}-{self._session}"
        body = codec.encode(event, id=id, actor=f"worker:{self._worker_id}", at=time.time())
        return await self._journal.append(Draft(codec.subject_of(event), body, id))
