"""Takes what scripts and workers say for streams, looks whose it is, and passes it on.

Log lines of workers come here always: only those of runs that were placed on a worker go on (`lines.py`).

Where several brokers keep copies of the streams, everything that strangers say for them comes here. Headers
of a message can demand things of the stream that takes it, and a broker lets each sender write what headers
it likes. One demand that is not met, `Nats-Expected-Last-Msg-Id`, is found by each copy of a stream by
itself; each then takes itself for broken, for good. So strangers do not reach those streams: their accounts
lead here, and from here goes on, under the same subject, what they say, with those headers alone that senders
need.

Nothing is kept: the answer is the stream's own, and where it belongs stands in the name of the inbox in
which it arrives. All replicas of the intake do this, whoever leads; while there is none senders hear nobody,
and say it again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping

import msgspec
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from det_contracts import subjects
from services.intake.fair_queue import HELD, Turns, sender_of
from services.intake.lines import Head, NotTheirs, Placements, check, head_of
from services.intake.measures import IntakeMeasures
from services.kit import trace_context
from services.kit.jetstream_api import NOT_YOURS
from services.kit.log import Log

ORDERS_ASKED = subjects.orders_heard("")
EXPECTED = "Nats-Expected-Last-Subject-Sequence"
"""Checked by who leads the stream, before any copy hears of it."""
OF_ORDERS = (EXPECTED, f"{EXPECTED}-Subject", "Nats-Rollup")
"""With these a worker asks whether its orders are the newest: `worker/order_feed.py`."""
OF_ALL = ("Nats-Msg-Id", trace_context.HEADER)
LONGEST = 256
SHUT_S = 1.0
"""For so long nothing is heard of a worker that said lines of another's, as each costs a look at the log."""

log = structlog.get_logger()


class Edge:
    """Passes on what comes over one connection, on which nothing else depends."""

    def __init__(
        self, connection: Client, journal: Log, measures: IntakeMeasures, *, shut_s: float = SHUT_S
    ) -> None:
        """`journal` is where it is looked up which worker a run was placed on."""
        self._connection = connection
        self._answers = f"{connection.new_inbox()}."
        """With the reply subject of a sender behind it, where the answer to what it said arrives: a broker
        takes no reply subject that another account's question has been given."""

        self._turns = Turns[Msg]()
        self._came = asyncio.Event()
        self._placements = Placements(journal)
        self._measures = measures
        self._shut_s = shut_s
        self._looking = asyncio.TaskGroup()

    @property
    def held(self) -> int:
        """Bytes that wait here."""
        return self._turns.bytes

    async def run(self) -> None:
        """Pass on until cancelled."""
        await self._hear(f"{self._answers}>", self._answer)
        await self._hear(subjects.at_edge(">"), self._take, queue="edge")
        await self._hear(subjects.lines_of_worker("*"), self._take, queue="edge")
        async with self._looking:
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
        if not message.subject.startswith(subjects.EDGE):
            await self._pass_lines_on(message)
            return
        subject = message.subject.removeprefix(subjects.EDGE)
        await self._store(subject, message, passed(subject, message.headers or {}))

    async def _store(self, subject: str, message: Msg, headers: dict[str, str] | None) -> None:
        answered = self._answers + message.reply if message.reply else ""
        await self._publish(subject, message.data, answered, headers)

    # -- log lines

    async def _pass_lines_on(self, message: Msg) -> None:
        try:
            head = head_of(message.subject, message.data)
            run = self._placements.known(head.allocation_id)
            if run is not None:
                check(head, run)
                await self._store_lines(head, message)
                return
        except NotTheirs as error:
            await self._refuse(message, error)
            self._hold(message, self._shut(sender_of(message.subject)))
            return
        self._hold(message, self._look_up(head, message))

    def _hold(self, message: Msg, until: Awaitable[None]) -> None:
        """Take nothing of who said this until something is done; all others go on."""
        sender = sender_of(message.subject)
        self._turns.hold(sender)

        async def wait() -> None:
            await until
            self._turns.let_go(sender)
            self._came.set()

        self._looking.create_task(wait())

    async def _look_up(self, head: Head, message: Msg) -> None:
        try:
            check(head, await self._placements.look_up(head.allocation_id))
        except NotTheirs as error:
            await self._refuse(message, error)
            await self._shut(sender_of(message.subject))
        except Exception as error:
            # The log, or its archive, cannot be read just now: unanswered, it is said again.
            log.warning("lines.not_looked_up", allocation=head.allocation_id, error=repr(error))
            await self._shut(sender_of(message.subject))
        else:
            await self._store_lines(head, message)

    async def _store_lines(self, head: Head, message: Msg) -> None:
        kept = passed(subjects.LOGS, message.headers or {}) or {}
        await self._store(subjects.logs(head.task_id), message, kept | {"Nats-Msg-Id": head.id})

    async def _refuse(self, message: Msg, why: NotTheirs) -> None:
        self._measures.lines_refused()
        log.warning("lines.refused", on=message.subject[:200], reason=str(why))
        if message.reply:
            error = {"code": 403, "err_code": NOT_YOURS, "description": str(why)}
            await self._publish(message.reply, msgspec.json.encode({"error": error}))

    async def _shut(self, sender: str) -> None:
        self._turns.shut(sender)
        await asyncio.sleep(self._shut_s)

    # -- what streams answer

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
