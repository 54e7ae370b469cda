"""Where several brokers keep copies of the streams: passes on to them what scripts and workers say.

Headers of a message can demand things of the stream that takes it, and a broker lets each sender write what
headers it likes. One demand that is not met, `Nats-Expected-Last-Msg-Id`, is found by each copy of a stream
by itself; each then takes itself for broken, for good. So strangers do not reach those streams: their
accounts lead here, and from here goes on, under the same subject, what they say, with those headers alone
that senders need.

Nothing is kept: the answer is the stream's own, and where it belongs stands in the name of the inbox in
which it arrives. All replicas of the intake do this, whoever leads; while there is none senders hear nobody,
and say it again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from det_contracts import subjects
from services.intake.fair_queue import HELD, Turns, sender_of
from services.kit import trace_context

ORDERS_ASKED = subjects.orders_heard("")
EXPECTED = "Nats-Expected-Last-Subject-Sequence"
"""Checked by who leads the stream, before any copy hears of it."""
OF_ORDERS = (EXPECTED, f"{EXPECTED}-Subject", "Nats-Rollup")
"""With these a worker asks whether its orders are the newest: `worker/order_feed.py`."""
OF_ALL = ("Nats-Msg-Id", trace_context.HEADER)
LONGEST = 256


class Edge:
    """Passes on what comes over one connection, on which nothing else depends."""

    def __init__(self, connection: Client) -> None:
        self._connection = connection
        self._answers = f"{connection.new_inbox()}."
        """With the reply subject of a sender behind it, where the answer to what it said arrives: a broker
        takes no reply subject that another account's question has been given."""

        self._turns = Turns[Msg]()
        self._came = asyncio.Event()

    async def run(self) -> None:
        """Pass on until cancelled."""
        await self._hear(f"{self._answers}>", self._answer)
        await self._hear(subjects.at_edge(">"), self._take, queue="edge")
        while True:
            await self._came.wait()
            self._came.clear()
            while (message := self._turns.take()) is not None:
                await self._pass_on(message)

    async def _hear(self, pattern: str, tell: Callable[[Msg], Awaitable[None]], queue: str = "") -> None:
        await self._connection.subscribe(
            pattern, queue=queue, cb=tell, pending_msgs_limit=-1, pending_bytes_limit=HELD
        )

    async def _take(self, message: Msg) -> None:
        sender = sender_of(message.subject.removeprefix(subjects.EDGE))
        if self._turns.put(sender, message, len(message.data) + LONGEST):
            self._came.set()

    async def _pass_on(self, message: Msg) -> None:
        subject = message.subject.removeprefix(subjects.EDGE)
        answered = self._answers + message.reply if message.reply else ""
        await self._publish(subject, message.data, answered, passed(subject, message.headers or {}))

    async def _answer(self, message: Msg) -> None:
        # The broker's own word that no stream is there just now is a status, and no body.
        status = (message.headers or {}).get("Status")
        headers = {"Status": status} if status else None
        await self._publish(message.subject.removeprefix(self._answers), message.data, headers=headers)

    async def _publish(
        self, subject: str, body: bytes, reply: str = "", headers: dict[str, str] | None = None
    ) -> None:
        # No subject to the client, or no broker just now: that no answer comes says the same to who asked.
        with contextlib.suppress(NatsError, OSError):
            await self._connection.publish(subject, body, reply, headers)


def passed(subject: str, headers: Mapping[str, str]) -> dict[str, str] | None:
    """Of the headers of a message those that go with it; None for none."""
    names = OF_ORDERS if subject.startswith(ORDERS_ASKED) else OF_ALL
    found = {name: headers[name] for name in names if _is_plain(headers.get(name, ""))}
    return found or None


def _is_plain(value: str) -> bool:
    return 0 < len(value) <= LONGEST and value.isascii() and value.isprintable()
