"""Removes the orders of forgotten workers from the ORDERS stream.

Workers of a pool that grows and shrinks never return under the same id, and each would leave a message.
Orders do not simply expire: an isolated worker asks whether its orders are still the newest ones, and ends
its runs if they are not there.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection
from typing import Protocol

import structlog

from det_contracts import subjects
from services.kit.log import LogError
from services.kit.parts import Parts
from services.kit.rules import Key
from services.scheduler.domain import State
from services.scheduler.orders import OrdersWriter, decode_orders

POLL_EVERY_S = 0.5
RETRY_S = 60.0

log = structlog.get_logger()


class Stream(Protocol):
    """See `services.scheduler.order_stream`."""

    async def workers(self) -> list[str]: ...

    async def delete(self, position: int) -> None: ...


class ForgottenOrders:
    """Removes orders while this replica leads."""

    def __init__(self, parts: Parts, stream: Stream, writer: OrdersWriter) -> None:
        self._runner = parts.runner
        self._journal = parts.journal
        self._is_leader = parts.is_leader
        self._stream = stream
        self._writer = writer
        self._candidates: set[str] | None = None
        """Workers that may have left orders behind; None before the stream was asked."""
        self._wake = asyncio.Event()
        parts.saver.watch(self._on_records_changed, self._on_reload)

    def _on_records_changed(self, keys: Collection[Key]) -> None:
        unknown = {id for kind, id in keys if kind == "workers" and not self._is_known(id)}
        if unknown and self._candidates is not None:
            self._candidates |= unknown
            self._wake.set()

    def _on_reload(self) -> None:
        self._candidates = None

    def _is_known(self, worker_id: str) -> bool:
        state: State = self._runner.state
        return worker_id in state.workers or self._writer.awaits_registration(worker_id)

    async def run(self) -> None:
        """Remove orders until cancelled."""
        await self._runner.ready.wait()
        while True:
            with contextlib.suppress(TimeoutError):
                # Nothing wakes this loop when leadership changes.
                async with asyncio.timeout(POLL_EVERY_S):
                    await self._wake.wait()
            self._wake.clear()
            if not self._is_leader():
                self._candidates = None
                continue
            try:
                await self._remove_all()
            except LogError as error:
                log.warning("orders.not_removed", error=str(error), again_in_s=RETRY_S)
                await asyncio.sleep(RETRY_S)

    async def _remove_all(self) -> None:
        if self._candidates is None:
            # Some were forgotten while no replica led, or by a release that left their orders.
            left = [worker_id for worker_id in await self._stream.workers() if not self._is_known(worker_id)]
            self._candidates = set(left)
        while self._candidates and self._is_leader():
            worker_id = next(iter(self._candidates))
            await self._remove(worker_id)
            if self._candidates is not None:
                self._candidates.discard(worker_id)

    async def _remove(self, worker_id: str) -> None:
        stored = await self._journal.last(subjects.orders(worker_id))
        orders = decode_orders(stored.body) if stored is not None else None
        # Orders of a later position are from a replica that has read of this worker what is not read here.
        if (
            stored is None
            or orders is None
            or orders.position > self._runner.positions[subjects.CONTROL]
            or self._is_known(worker_id)
        ):
            return
        # By position, so that newer orders stay.
        await self._stream.delete(stored.position)
        self._writer.write_again(worker_id)
