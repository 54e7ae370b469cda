"""Receives messages of scripts and workers for streams, checks the sender, and passes them on.

Log lines of workers always come here: only those of runs that were placed on the worker are passed on
(`lines.py`).

If the streams are replicated, all external messages for them come here. Message headers can impose conditions
on the stream, and a broker lets senders write any headers. One condition that fails,
`Nats-Expected-Last-Msg-Id`, is evaluated by each replica of a stream on its own; each then considers itself
broken, permanently. So external senders have no access to those streams: their accounts lead here, and this
module passes their messages on under the same subject, with only the headers that senders need.

Nothing is stored: the answer is the stream's own, and the name of the inbox in which it arrives says where it
belongs. All replicas of the intake do this, whichever leads. While there is none, senders get no answer and
retry.
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
from services.intake.fair_queue import MAX_QUEUED_BYTES, FairQueue, sender_of
from services.intake.lines import Head, LinesRefused, Placements, check_placement, head_of
from services.intake.measures import IntakeMeasures
from services.kit import trace_context
from services.kit.jetstream_api import NOT_PERMITTED
from services.kit.log import Log
from services.kit.log_budget import LogBudget

ORDER_QUERIES = subjects.newest_orders_check("")
EXPECTED = "Nats-Expected-Last-Subject-Sequence"
"""Checked by the stream's leader before any follower receives the message."""
ORDER_HEADERS = (EXPECTED, f"{EXPECTED}-Subject", "Nats-Rollup")
"""The headers with which a worker asks whether its orders are the newest: `worker/order_feed.py`."""
COMMON_HEADERS = ("Nats-Msg-Id", trace_context.HEADER)
MAX_HEADER_CHARACTERS = 256
SHUT_OUT_S = 1.0
"""How long a worker that sent another worker's lines is ignored, in seconds: each case costs a lookup."""
LINES_SHARE = 128
"""How many times as much as the log takes of a trial a worker may send of lines in a second: 16 MiB, as four
runs print that print as fast as they may. What is beyond waits here and at the worker."""
BATCH_BYTES = 2048
"""What a batch of lines costs besides its size."""

log = structlog.get_logger()


class Edge:
    """Passes on messages from one connection, which is used for nothing else."""

    def __init__(
        self, connection: Client, journal: Log, measures: IntakeMeasures, *, shut_s: float = SHUT_OUT_S
    ) -> None:
        """`journal` is used to look up the workers that a run was placed on."""
        self._connection = connection
        self._answers = f"{connection.new_inbox()}."
        """Prefix of the inbox for stream answers; the sender's reply subject follows.

        The original reply subject cannot be used: a broker rejects one that belongs to another account's
        request.
        """

        self._queue = FairQueue[Msg]()
        self._arrived = asyncio.Event()
        self._placements = Placements(journal)
        self._measures = measures
        self._shut_s = shut_s
        self._lookups = asyncio.TaskGroup()
        self._budget = LogBudget(LINES_SHARE)

    @property
    def queued_bytes(self) -> int:
        """Number of bytes that wait here."""
        return self._queue.bytes

    async def run(self) -> None:
        """Pass messages on until cancelled."""
        # First: an answer to the first message that is passed on must find somebody who listens.
        await self._subscribe(f"{self._answers}>", self._return_answer)
        await self._subscribe(subjects.edge_subject(">"), self._receive, queue="edge")
        await self._subscribe(subjects.lines_of_worker("*"), self._receive, queue="edge")
        async with self._lookups:
            while True:
                await self._arrived.wait()
                self._arrived.clear()
                while (message := self._queue.take()) is not None:
                    await self._forward(message)

    async def _subscribe(
        self, pattern: str, callback: Callable[[Msg], Awaitable[None]], queue: str = ""
    ) -> None:
        await self._connection.subscribe(
            pattern, queue=queue, cb=callback, pending_msgs_limit=-1, pending_bytes_limit=MAX_QUEUED_BYTES
        )

    async def _receive(self, message: Msg) -> None:
        sender = sender_of(message.subject.removeprefix(subjects.EDGE))
        if self._queue.put(sender, message, len(message.data) + MAX_HEADER_CHARACTERS):
            self._arrived.set()

    async def _forward(self, message: Msg) -> None:
        if not message.subject.startswith(subjects.EDGE):
            await self._forward_lines(message)
            return
        subject = message.subject.removeprefix(subjects.EDGE)
        await self._store(subject, message, forwarded_headers(subject, message.headers or {}))

    async def _store(self, subject: str, message: Msg, headers: dict[str, str] | None) -> None:
        reply = self._answers + message.reply if message.reply else ""
        await self._publish(subject, message.data, reply, headers)

    # -- log lines

    async def _forward_lines(self, message: Msg) -> None:
        try:
            head = head_of(message.subject, message.data)
            run = self._placements.cached(head.allocation_id)
            if run is not None:
                check_placement(head, run)
                await self._store_lines(head, message)
                self._pace(message)
                return
        except LinesRefused as error:
            await self._refuse(message, error)
            self._hold(message, self._shut_out(sender_of(message.subject)))
            return
        self._hold(message, self._look_up(head, message))

    def _hold(self, message: Msg, until: Awaitable[None]) -> None:
        """Accept nothing from this sender until something is done; all others continue."""
        sender = sender_of(message.subject)
        # Its later batches wait, too: they would overtake this one, and a worker's lines must stay in order.
        self._queue.hold(sender)

        async def wait() -> None:
            await until
            self._queue.release(sender)
            self._arrived.set()

        self._lookups.create_task(wait())

    async def _look_up(self, head: Head, message: Msg) -> None:
        try:
            check_placement(head, await self._placements.look_up(head.allocation_id))
        except LinesRefused as error:
            await self._refuse(message, error)
            await self._shut_out(sender_of(message.subject))
        except Exception as error:
            # The log or its archive cannot be read now. Without an answer, the sender retries.
            log.warning("lines.not_looked_up", allocation=head.allocation_id, error=repr(error))
            await self._shut_out(sender_of(message.subject))
        else:
            await self._store_lines(head, message)
            await asyncio.sleep(self._charge(message))

    def _pace(self, message: Msg) -> None:
        """Let the sender wait if it has sent more than its share."""
        pause = self._charge(message)
        if pause > 0:
            self._hold(message, asyncio.sleep(pause))

    def _charge(self, message: Msg) -> float:
        """Count lines that were passed on; returns the seconds until the next may be."""
        sender, at = sender_of(message.subject), asyncio.get_running_loop().time()
        self._budget.charge(sender, len(message.data) + BATCH_BYTES, at)
        return self._budget.wait_s(sender, at)

    async def _store_lines(self, head: Head, message: Msg) -> None:
        headers = forwarded_headers(subjects.LOGS, message.headers or {}) or {}
        await self._store(subjects.logs(head.task_id), message, headers | {"Nats-Msg-Id": head.id})

    async def _refuse(self, message: Msg, why: LinesRefused) -> None:
        self._measures.lines_refused()
        log.warning("lines.refused", on=message.subject[:200], reason=str(why))
        if message.reply:
            # In the form of a stream's answer, so that workers need not know whether an intake stands
            # between.
            error = {"code": 403, "err_code": NOT_PERMITTED, "description": str(why)}
            await self._publish(message.reply, msgspec.json.encode({"error": error}))

    async def _shut_out(self, sender: str) -> None:
        self._queue.shut(sender)
        await asyncio.sleep(self._shut_s)

    # -- what streams answer

    async def _return_answer(self, message: Msg) -> None:
        # If no stream is there, the broker answers with a status and no body.
        status = (message.headers or {}).get("Status")
        headers = {"Status": status} if status else None
        await self._publish(message.subject.removeprefix(self._answers), message.data, headers=headers)

    async def _publish(
        self, subject: str, body: bytes, reply: str = "", headers: dict[str, str] | None = None
    ) -> None:
        # The client has no such subject, or the broker is away: the sender sees that no answer arrives.
        with contextlib.suppress(NatsError, OSError):
            await self._connection.publish(subject, body, reply, headers)


def forwarded_headers(subject: str, headers: Mapping[str, str]) -> dict[str, str] | None:
    """The headers of a message that are passed on; None if there are none."""
    names = ORDER_HEADERS if subject.startswith(ORDER_QUERIES) else COMMON_HEADERS
    forwarded = {name: headers[name] for name in names if _is_plain(headers.get(name, ""))}
    return forwarded or None


def _is_plain(value: str) -> bool:
    return 0 < len(value) <= MAX_HEADER_CHARACTERS and value.isascii() and value.isprintable()
