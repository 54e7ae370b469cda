"""Requests and answers over NATS: commands and queries to the one owner of a fact."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import ConnectionClosedError, MaxPayloadError, NoRespondersError
from nats.errors import Error as NatsError

from det_contracts import commands, queries, subjects
from det_contracts.commands import Answer
from det_contracts.limits import STATED_BYTES
from det_contracts.problems import Problem, Refused, invalid, unavailable
from services.kit.authz import acting
from services.kit.log_progress import ProcessProgress, fetch_log_progress
from services.kit.nats_client import NotPermitted
from services.kit.process_metrics import Measures
from services.kit.rules import Call
from services.kit.suspension import SuspensionDetector
from services.kit.trace_context import CURRENT, HEADER

if TYPE_CHECKING:
    from services.kit.spans import Span, Tracer

log = structlog.get_logger()
PATIENCE_S = 10.0
"""Seconds that a requester waits for an owner before it reports 'unavailable'."""
FORWARD_PATIENCE_S = 0.8 * PATIENCE_S
"""The same for a request that is passed on: whoever waits for it is still there to be told why it failed."""

Handle = Callable[[Any, Call], Awaitable[tuple[int, Any]]]
Reply = Callable[[Any, str, int], Awaitable[tuple[int, Any]]]
"""Answers a query at (stream, position) or later."""


class RawAnswer(msgspec.Struct, frozen=True):
    """An `Answer` that is passed on."""

    position: int = 0
    value: msgspec.Raw = msgspec.Raw(b"null")
    problem: Problem | None = None


A = TypeVar("A", Answer, RawAnswer)


class NotOurs(Exception):
    """A request is for another process, which has received it too. Nothing is answered here."""


def name_of(record: type[Any]) -> str:
    """Return the name that a command or query has in its subject."""
    return str(record.__struct_config__.tag)


class BusClient:
    """Sends commands and queries, and turns problems into `Refused`."""

    def __init__(self, connection: Client) -> None:
        self._connection = connection

    async def command(self, command: Any, *, call_id: str | None = None) -> Answer:
        """Ask an owner to decide. Raises `Refused`, with 'unavailable' if no answer arrives in time."""
        owner = commands.OWNER_OF[type(command)]
        subject = subjects.command(owner, name_of(type(command)))
        body = msgspec.json.encode(command)
        _check_size(body)
        # The owner records it as the cause of what it decides, so `det why` and the logs of both processes
        # name the same call.
        headers = {"Steadfast-Call": call_id or uuid.uuid4().hex}
        if trace := CURRENT.get():
            headers[HEADER] = trace
        if script := acting.SCRIPT.get():
            headers[acting.HEADER] = script
        return await self._request(owner, subject, body, headers)

    async def query(self, query: Any, *, min_position: int = 0, stream: str = subjects.CONTROL) -> Answer:
        """Query an owner at `min_position` of a stream or later."""
        owner = queries.OWNER_OF[type(query)]
        ask = queries.Ask(msgspec.Raw(msgspec.json.encode(query)), min_position, stream)
        subject = subjects.query(owner, name_of(type(query)))
        return await self._request(owner, subject, msgspec.json.encode(ask), None)

    async def forward(self, owner: str, name: str, kind: type, ask: queries.Ask) -> RawAnswer:
        """Forward a query of a kind to an owner that answers it under `name`. The value stays encoded."""
        subject, body = subjects.query(name, name_of(kind)), msgspec.json.encode(ask)
        return await self._request(owner, subject, body, None, RawAnswer, FORWARD_PATIENCE_S)

    async def publish(self, subject: str, body: bytes) -> None:
        """Publish a message that is not stored.

        Raises `Refused` (unavailable) without a connection to the broker.
        """
        try:
            if not self._connection.is_connected:
                # The client would buffer the message and deliver it when it is stale.
                raise ConnectionClosedError
            await self._connection.publish(subject, body)
        except (NatsError, OSError):
            raise unavailable("the message bus cannot be reached; try again") from None

    async def log_progress(self, owners: Collection[str]) -> dict[str, list[ProcessProgress]]:
        """Ask all processes of services how far they have read the log.

        Raises `Refused` (unavailable) without a connection to the broker.
        """
        try:
            if not self._connection.is_connected:
                raise ConnectionClosedError
            return await fetch_log_progress(self._connection, owners)
        except (NatsError, OSError):
            raise unavailable("the message bus cannot be reached; try again") from None

    async def _request(
        self,
        owner: str,
        subject: str,
        body: bytes,
        headers: dict[str, str] | None,
        kind: type[A] = Answer,  # type: ignore[assignment]
        within_s: float = PATIENCE_S,
    ) -> A:
        deadline = time.monotonic() + within_s
        while True:
            left = deadline - time.monotonic()
            try:
                message = await self._connection.request(
                    subject, body, timeout=max(left, 0.05), headers=headers
                )
                break
            except NoRespondersError:
                # No service has seen the request, so retrying cannot repeat it.
                if left < 0.2:
                    raise unavailable(f"the {owner} service is not running; try again later") from None
                await asyncio.sleep(0.1)
            except MaxPayloadError:
                raise invalid(f"the request is too large: {len(body):,} bytes; make it smaller") from None
            except NotPermitted as error:
                raise unavailable(f"the {owner} service cannot be asked: {error}") from None
            except (NatsError, TimeoutError, OSError):
                raise unavailable(f"the {owner} service did not answer within {within_s:.0f} s") from None
        answer = msgspec.json.decode(message.data, type=kind)
        if answer.problem is not None:
            raise Refused(answer.problem)
        return answer


def _check_size(body: bytes) -> None:
    """Check the size of a command, which becomes an event and may lead to others."""
    if len(body) > STATED_BYTES:
        raise invalid(
            f"the request is too large: {len(body):,} bytes where at most {STATED_BYTES:,} are taken; "
            "ask for less at once, or for smaller values"
        )


def _decode(decoder: msgspec.json.Decoder[Any], body: bytes | msgspec.Raw) -> Any:
    """Decode a request. Raises `Refused` if it is malformed."""
    try:
        return decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise invalid(f"the request cannot be read: {error}") from None


_QUERY_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder(queries.Ask)


class BusServer:
    """Receives commands and queries for one owner and answers each in its own task."""

    def __init__(
        self,
        connection: Client,
        owner: str,
        measures: Measures | None = None,
        tracer: Tracer | None = None,
        *,
        queue: str = "",
        stranger_connection: Client | None = None,
    ) -> None:
        """Each request is received by one process of a `queue`; empty: of the owner's.

        Scripts and workers are heard on `stranger_connection`, if there is one.
        """
        self._connection = connection
        self._stranger_connection = stranger_connection or connection
        self._owner = owner
        self._queue = queue or owner
        self._measures = measures or Measures(owner)
        self._tracer = tracer
        self._tasks: set[asyncio.Task[None]] = set()
        self._suspension = SuspensionDetector()
        self._clock_task: asyncio.Task[None] | None = None

    async def serve_queries(self, kinds: Mapping[type, Reply]) -> list[Subscription]:
        """Answer queries from other services, sharing the work with other replicas."""
        subscriptions = []
        for kind, reply in kinds.items():
            decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind)

            # As defaults, because a closure would see the values of the last turn of the loop.
            async def work(message: Msg, reply: Reply = reply, decoder: Any = decoder) -> tuple[int, Any]:
                ask = _decode(_QUERY_DECODER, message.data)
                return await reply(_decode(decoder, ask.body), ask.stream, ask.min_position)

            subscriptions.append(await self._subscribe(subjects.query(self._owner, name_of(kind)), work))
        return subscriptions

    async def serve_scripts(
        self, name: str, work: Callable[[Msg], Awaitable[tuple[int, Any]]]
    ) -> Subscription:
        """Answer a question that scripts ask about their own trial; see `services.kit.script_requests`."""
        return await self._subscribe(
            subjects.question_of_trial("*", self._owner, name), work, self._stranger_connection
        )

    async def serve_workers(
        self, name: str, work: Callable[[Msg], Awaitable[tuple[int, Any]]]
    ) -> Subscription:
        """Answer a question that workers ask about themselves."""
        return await self._subscribe(
            subjects.question_of_worker("*", self._owner, name), work, self._stranger_connection
        )

    async def serve_commands(self, kinds: Mapping[type, Handle]) -> list[Subscription]:
        """Answer commands. Only the replica that decides should subscribe to them."""
        subscriptions = []
        self._clock_task = self._clock_task or asyncio.create_task(self._suspension.run())
        for kind, handle in kinds.items():
            decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind)

            async def work(message: Msg, handle: Handle = handle, decoder: Any = decoder) -> tuple[int, Any]:
                # After a pause, requests wait here whose callers gave up long ago. To carry them out now
                # would surprise people.
                if self._suspension.was_suspended():
                    raise unavailable(f"the {self._owner} service was stopped for a while; ask again")
                headers = message.headers or {}
                id = headers.get("Steadfast-Call") or uuid.uuid4().hex
                _check_size(message.data)
                call = Call(id, time.time(), headers.get(acting.HEADER, ""))
                return await handle(_decode(decoder, message.data), call)

            subscriptions.append(await self._subscribe(subjects.command(self._owner, name_of(kind)), work))
        return subscriptions

    async def _subscribe(
        self,
        subject: str,
        work: Callable[[Msg], Awaitable[tuple[int, Any]]],
        connection: Client | None = None,
    ) -> Subscription:
        async def on_message(message: Msg) -> None:
            task = asyncio.create_task(self._answer(message, work))
            # The loop refers to its tasks only weakly; without this, one could be collected while it runs.
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return await (connection or self._connection).subscribe(subject, queue=self._queue, cb=on_message)

    def _span(self, name: str, within: str) -> Span | None:
        """Start a span if the request carries a trace. The rest of this task belongs to it."""
        if self._tracer is None or not within:
            return None
        span = self._tracer.start_span(f"{self._owner} {name}", within, kind="server")
        CURRENT.set(span.header)
        return span

    async def _respond(self, message: Msg, answer: Answer) -> Answer:
        """Send an answer, or the reason why it cannot be sent. Returns what was sent."""
        body = msgspec.json.encode(answer)
        try:
            await message.respond(body)
        except MaxPayloadError:
            problem = Problem(
                "invalid_argument", f"the answer is too large: {len(body):,} bytes; ask for less at once"
            )
            return await self._respond(message, Answer(problem=problem))
        except NatsError as error:
            # The requester times out and asks again.
            log.warning("answer.unsent", subject=message.subject, error=repr(error))
        return answer

    async def _answer(self, message: Msg, work: Callable[[Msg], Awaitable[tuple[int, Any]]]) -> None:
        began = time.perf_counter()
        name = message.subject.rpartition(".")[2]
        span = self._span(name, (message.headers or {}).get(HEADER, ""))
        try:
            position, value = await work(message)
            answer = Answer(position, value)
        except NotOurs:
            return
        except Refused as refusal:
            answer = Answer(problem=refusal.problem)
        except Exception as error:
            log.exception("answer.failed", subject=message.subject)
            answer = Answer(problem=Problem("internal", f"{self._owner} failed on this request: {error!r}"))
        answer = await self._respond(message, answer)
        outcome = answer.problem.code if answer.problem else "ok"
        if span is not None:
            span.end("" if outcome == "ok" else outcome)
        self._measures.answered(name, outcome, time.perf_counter() - began)
