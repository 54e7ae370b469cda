"""Delivers a worker's orders, through a consumer that the scheduler has created for it.

It needs only two operations of the broker: get the next message, and acknowledge one. Unacknowledged messages
are redelivered.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from det_contracts import subjects
from det_contracts.commands import Answer
from det_contracts.script_queries import Holder

ORDERS_PER_REQUEST = 100
EXPIRES_S = 30
HEARTBEAT_S = 1
SILENT_S = 4.0
"""A consumer that sends nothing for this long has gone with its broker, in seconds."""
POLL_EVERY_S = 0.1
RETRY_S = 0.2
TIMEOUT_S = 2.0
NANOSECONDS = 1_000_000_000
UNREACHABLE_ERRORS = (NatsError, TimeoutError, OSError)
NOT_PERMITTED = 10111
"""The broker's error code for a check that it makes after the check of the subject's sequence."""
WRONG_LAST_SEQUENCE = 10071


class OrderMessage(msgspec.Struct, frozen=True):
    """Orders as stored in their stream."""

    sequence: int
    body: bytes
    reply: str = ""


class OrderFeed:
    """The orders of one worker. The newest are redelivered until they were acted on."""

    def __init__(self, connection: Client, worker_id: str) -> None:
        self._connection = connection
        self._worker_id = worker_id
        self._messages: asyncio.Queue[OrderMessage] = asyncio.Queue()
        self._is_requested = False
        self._outstanding = 0
        """Orders that the current request may still bring."""
        self._last_message_at = 0.0
        self._reconnects = -1
        self._inbox = ""

    async def next(self) -> OrderMessage:
        """Wait for orders that were not acted on."""
        if not self._inbox:
            self._inbox = self._connection.new_inbox()
            await self._connection.subscribe(self._inbox, cb=self._on_message)
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_EVERY_S):
                    return await self._messages.get()
            await self._renew_request()

    async def acted_on(self, batch: OrderMessage) -> None:
        """Acknowledge orders, so that they are not redelivered."""
        with contextlib.suppress(*UNREACHABLE_ERRORS):
            # Only now, and not on arrival: a worker that is killed in between must receive them again.
            await self._connection.publish(batch.reply, b"+ACK")

    async def is_newest(self, sequence: int) -> bool:
        """Whether orders with this sequence number are the newest; 0 stands for none. Retries until answered.

        Only the leader of the stream is sure to have the newest message. So this sends a message that the
        leader always refuses; the first reason that it gives is the answer.
        """
        subject = subjects.newest_orders_check(self._worker_id)
        headers = {
            "Nats-Expected-Last-Subject-Sequence": str(sequence),
            "Nats-Expected-Last-Subject-Sequence-Subject": subjects.orders(self._worker_id),
            # Not permitted in this stream, and rejected by its leader only. With a wrong
            # `Nats-Expected-Last-Msg-Id`, the followers would reject it too, and would then take their own
            # copy of the stream for broken.
            "Nats-Rollup": "sub",
        }
        while True:
            with contextlib.suppress(*UNREACHABLE_ERRORS, msgspec.MsgspecError):
                reply = await self._connection.request(subject, b"", timeout=TIMEOUT_S, headers=headers)
                answer: dict[str, Any] = msgspec.json.decode(reply.data)
                code = answer.get("error", {}).get("err_code")
                if code in (NOT_PERMITTED, WRONG_LAST_SEQUENCE):
                    return bool(code == NOT_PERMITTED)
            await asyncio.sleep(RETRY_S)

    async def holder(self) -> Holder | None:
        """The holder of this worker's id as the scheduler knows it; None if it cannot be learned now."""
        subject = subjects.question_of_worker(self._worker_id, "scheduler", "holder")
        try:
            reply = await self._connection.request(subject, b"{}", timeout=TIMEOUT_S)
            answer = msgspec.json.decode(reply.data, type=Answer)
            return None if answer.value is None else msgspec.convert(answer.value, Holder)
        except (*UNREACHABLE_ERRORS, msgspec.MsgspecError):
            return None

    async def _renew_request(self) -> None:
        has_reconnected = self._connection.stats["reconnects"] != self._reconnects
        silent = time.monotonic() - self._last_message_at > SILENT_S
        if self._is_requested and not has_reconnected and not silent:
            return
        self._reconnects = self._connection.stats["reconnects"]
        # Before the request is sent, as its first answer may arrive while this waits.
        self._is_requested, self._last_message_at = True, time.monotonic()
        self._outstanding = ORDERS_PER_REQUEST
        request = {
            "batch": ORDERS_PER_REQUEST,
            "expires": EXPIRES_S * NANOSECONDS,
            "idle_heartbeat": HEARTBEAT_S * NANOSECONDS,
        }
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{subjects.ORDERS}.{self._worker_id}"
        try:
            await self._connection.publish(subject, msgspec.json.encode(request), reply=self._inbox)
        except UNREACHABLE_ERRORS:
            self._is_requested = False

    async def _on_message(self, message: Msg) -> None:
        self._last_message_at = time.monotonic()
        if message.subject == self._inbox:
            # Any status but a heartbeat ends the request: it expired, or there is no consumer yet.
            if (message.headers or {}).get("Status") != "100":
                self._is_requested = False
            return
        # $JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>
        self._messages.put_nowait(
            OrderMessage(int(message.reply.split(".")[-4]), message.data, message.reply)
        )
        self._outstanding -= 1
        if self._outstanding <= 0:
            # Nothing else says that a request has brought all that it asked for.
            self._is_requested = False
            await self._renew_request()
