"""The log in NATS JetStream.

Appending uses atomic batches (`Nats-Batch-*` headers, for which the client library has no API), fenced by
`Nats-Expected-Last-Subject-Sequence` on the first message. Reading is in `jetstream_feed`.
"""

from __future__ import annotations

import asyncio
import base64
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
import structlog
from nats.aio.client import Client
from nats.js.client import JetStreamContext

from det_contracts import subjects as names
from det_contracts.limits import WITNESS_BYTES, WITNESS_MESSAGES
from services.kit.cancellation import finish
from services.kit.jetstream_api import (
    MISSING_STREAM,
    NO_MESSAGE,
    NOT_PERMITTED,
    RETRY_S,
    UNREACHABLE_ERRORS,
    is_from_leader,
    request,
    request_with_retry,
)
from services.kit.jetstream_feed import JetStreamFeed
from services.kit.log import (
    BATCH_LIMIT,
    Draft,
    Fence,
    FenceLost,
    LogTruncated,
    Mark,
    NeverStored,
    NotStored,
    OutcomeUnknown,
    Stored,
    TooLarge,
)
from services.kit.nats_client import NotPermitted
from services.kit.stream_check import recovery_advice
from services.kit.trace_context import HEADER

PURGE_DENIED = 10110
FENCE_ERRORS = (10071, 10164, 10201)
"""Error codes: wrong last sequence on a stream or subject; a batch that repeats a stored message."""
MAX_HEADER_BYTES = 512
"""Upper bound in bytes for the header names and framing of one message."""
STREAM_FAILURE_CODES = (500, 503)
"""Status codes for which the stream itself is the cause: any other message would fail too."""
REFUSAL_MEMORY_S = 60.0
"""How long in seconds a refusal is reported if nothing was tried since."""
ACK_TIMEOUT_S = 2.0
# Well below the two minutes for which the broker remembers ids (`duplicate_window`), so a repeated
# append cannot store a message twice.
APPEND_PATIENCE_S = 30.0
REFUSAL_PATIENCE_S = 5.0
"""How long in seconds to keep asking for a stream that the broker refuses to create."""
FORMING_ERRORS = (10005, 10008, 10009, 10118)
"""Errors of a cluster that is still forming: too few brokers, no leader, or the stream is offline."""
FORMING_PATIENCE_S = 30.0
NANOSECONDS = 1_000_000_000
LAZY_FLUSH_PROBLEM = "was created by an earlier version with lazy flushing; the broker cannot change that"
PURGE_DENIED_PROBLEM = "was created by an earlier version so that nothing can be removed from it."
REMAKE_ADVICE = "Stop the services and run `python -m services.local.remake`, which keeps its contents"

log = structlog.get_logger()


class Ack(msgspec.Struct):
    """The broker's answer to a stored message or batch."""

    seq: int = 0
    error: dict[str, Any] | None = None


class JetStreamLog:
    """Implements `services.kit.log.Log` on a connection."""

    def __init__(self, connection: Client, marks: Mapping[str, Mark] | None = None) -> None:
        """`marks` holds, per stream, a message read earlier. A log that does not contain it is refused."""
        self._connection = connection
        self.marks = dict(marks or {})
        """Per stream, the newest message read."""
        self._refusals: dict[str, tuple[float, str]] = {}
        """Streams that currently accept nothing: when each last said so, and why."""

    def refusals(self) -> dict[str, str]:
        """Return the streams that recently refused to store anything, each with the reason."""
        now = time.monotonic()
        self._refusals = {
            name: refusal for name, refusal in self._refusals.items() if now - refusal[0] < REFUSAL_MEMORY_S
        }
        return {name: why for name, (_, why) in self._refusals.items()}

    def _record_outcome(self, subject: str, error: dict[str, Any] | None) -> None:
        stream = names.stream_of(subject)
        if error is None:
            self._refusals.pop(stream, None)
        elif error.get("code") in STREAM_FAILURE_CODES:
            self._refusals[stream] = time.monotonic(), str(error.get("description"))

    async def append(self, draft: Draft) -> int:
        deadline = time.monotonic() + APPEND_PATIENCE_S
        while True:
            try:
                return await self._publish(draft.subject, draft.body, _headers(draft))
            except NeverStored:
                raise
            except (OutcomeUnknown, NotStored):
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(RETRY_S)

    async def append_batch(self, drafts: Sequence[Draft], *, fence: Fence) -> int:
        if len(drafts) > BATCH_LIMIT:
            raise ValueError(f"a batch takes {BATCH_LIMIT} messages, not {len(drafts)}")
        if len(drafts) == 1:
            # A single message is atomic by itself and takes a twentieth of the time of a batch.
            return await self._publish(
                drafts[0].subject, drafts[0].body, _headers(drafts[0]) | _fence_headers(fence)
            )
        if drafts[0].subject != fence.subject:
            raise ValueError(f"the batch must begin on {fence.subject}, not on {drafts[0].subject}")
        # All sizes before the first message is sent. A batch that stops half-way stays open in the broker
        # until it times out.
        for draft in drafts:
            self._check_size(draft.subject, draft.body, _headers(draft))
        batch = uuid.uuid4().hex
        headers = {"Nats-Expected-Last-Subject-Sequence": str(fence.last)}
        try:
            for number, draft in enumerate(drafts, 1):
                # Only the first message carries the fence: the broker checks it for the batch as a whole.
                headers |= _headers(draft) | {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(number)}
                # Only the last message is answered for the whole batch. The broker stores the others beside
                # the stream until then.
                if number < len(drafts):
                    await self._connection.publish(draft.subject, draft.body, headers=headers)
                    headers = {}
        except UNREACHABLE_ERRORS as error:
            raise OutcomeUnknown(f"the batch could not be sent whole: {error!r}") from error
        headers["Nats-Batch-Commit"] = "1"
        return await self._publish(drafts[-1].subject, drafts[-1].body, headers)

    def _check_size(self, subject: str, body: bytes, headers: dict[str, str]) -> None:
        """Check the size including headers.

        The client checks only the body; the broker would close the connection.
        """
        size = len(body) + MAX_HEADER_BYTES + sum(map(len, headers.values()))
        most = self._connection.max_payload
        if size > most:
            raise TooLarge(f"{subject}: {size:,} bytes with headers, the broker takes {most:,}")

    async def _publish(self, subject: str, body: bytes, headers: dict[str, str]) -> int:
        self._check_size(subject, body, headers)
        try:
            reply = await self._connection.request(subject, body, timeout=ACK_TIMEOUT_S, headers=headers)
        except UNREACHABLE_ERRORS as error:
            kind = NeverStored if isinstance(error, NotPermitted) else OutcomeUnknown
            raise kind(f"no answer for {subject}: {error!r}") from error
        ack = msgspec.json.decode(reply.data, type=Ack)
        self._record_outcome(subject, ack.error)
        if ack.error is None:
            return ack.seq
        if ack.error.get("err_code") in FENCE_ERRORS:
            raise FenceLost(f"{subject}: {ack.error.get('description')}")
        # No retry can help, whereas `NotStored` may be temporary, such as a full disk.
        if ack.error.get("err_code") == NOT_PERMITTED:
            raise NeverStored(f"{subject}: {ack.error.get('description')}")
        raise NotStored(f"{subject}: {ack.error.get('description')} ({ack.error.get('err_code')})")

    @asynccontextmanager
    async def read(
        self, stream: str, *, after: int, subjects: Sequence[str] = ()
    ) -> AsyncIterator[JetStreamFeed]:
        feed = JetStreamFeed(self._connection, stream, after, subjects, self.marks)
        try:
            await feed.open()
            yield feed
        finally:
            await finish(feed.close())

    async def last(self, subject: str) -> Stored | None:
        # Ask the leader: another replica (`DIRECT.GET`) may not have a message that is already acknowledged.
        message = await self._get_message(names.stream_of(subject), last_by_subj=subject)
        return None if message is None else _parse_message(message)

    async def end(self, stream: str, *, after: int, subjects: Sequence[str] = ()) -> int:
        # STREAM.INFO is slow while messages are stored, and the newest message may be a large one.
        if not subjects and await self._get_message(stream, seq=after + 1, next_by_subj=">") is None:
            return after
        newest = await asyncio.gather(*(self._get_message(stream, last_by_subj=s) for s in subjects or ">"))
        return max([after, *(int(message["seq"]) for message in newest if message is not None)])

    async def _get_message(self, stream: str, **want: Any) -> Any:
        """Ask for a message until the broker answers; None if there is none."""
        while True:
            answer: dict[str, Any] = {}
            with suppress(OutcomeUnknown):
                answer = await self._api_request(f"STREAM.MSG.GET.{stream}", want)
            if "message" in answer or answer.get("error", {}).get("err_code") == NO_MESSAGE:
                return answer.get("message")
            await asyncio.sleep(RETRY_S)

    async def bounds(self, stream: str) -> tuple[int, int]:
        state = await self.state(stream)
        return int(state["first_seq"]) or 1, int(state["last_seq"])

    async def forget(self, stream: str, through: int) -> None:
        answer = await self._api_request(f"STREAM.PURGE.{stream}", {"seq": through + 1})
        if answer.get("error", {}).get("err_code") == PURGE_DENIED:
            raise NotStored(f"stream {stream} {PURGE_DENIED_PROBLEM} {REMAKE_ADVICE}")
        if "error" in answer:
            raise OutcomeUnknown(f"stream {stream}: {answer['error'].get('description')}")

    async def state(self, stream: str) -> dict[str, Any]:
        """Return the broker's stream state: `first_seq`, `last_seq`, `messages`, `bytes`, ..."""
        answer = await self._api_request(f"STREAM.INFO.{stream}", {})
        if "error" in answer:
            raise OutcomeUnknown(f"stream {stream}: {answer['error'].get('description')}")
        if not is_from_leader(answer):
            raise OutcomeUnknown(f"stream {stream} has no leader to tell its end")
        state: dict[str, Any] = answer["state"]
        return state

    async def _api_request(self, subject: str, body: dict[str, Any]) -> dict[str, Any]:
        try:
            return await request(self._connection, subject, body, ACK_TIMEOUT_S)
        except UNREACHABLE_ERRORS as error:
            raise OutcomeUnknown(f"no answer to {subject}: {error!r}") from error


def _parse_message(message: dict[str, Any]) -> Stored:
    body = base64.b64decode(message.get("data", ""))
    headers = base64.b64decode(message.get("hdrs", "")).decode(errors="replace")
    _, _, trace = headers.partition(f"\r\n{HEADER}: ")
    return Stored(message["subject"], message["seq"], body, trace.partition("\r\n")[0])


def _fence_headers(fence: Fence) -> dict[str, str]:
    """Return the fence headers of a single message, which may be on any subject."""
    name = "Nats-Expected-Last-Subject-Sequence"
    return {name: str(fence.last), f"{name}-Subject": fence.subject}


def _headers(draft: Draft) -> dict[str, str]:
    traced = {HEADER: draft.trace} if draft.trace else {}
    return {"Nats-Msg-Id": draft.id} | traced


async def ensure_streams(
    js: JetStreamContext,
    *,
    replicas: int = 1,
    keep_days: float = 30.0,
    keep_bytes: int = 16 << 30,
    shrink: bool = True,
    read_positions: Mapping[str, int] | None = None,
    adjust: bool = True,
) -> None:
    """Create all streams that do not exist and, with `adjust`, update the others to these settings.

    Among the services, only the intake may adjust every stream (`services.kit.credentials`).

    Every stream is flushed before an ack (the broker's `sync_interval: always`). None is compressed: replicas
    of compressed streams did not recover after a kill (nats-server 2.15). CONTROL is kept until it is
    archived, ORDERS keeps the newest message per worker, and REPORTS and LOGS are bounded by age and size;
    without `shrink`, a stream that holds more than `keep_bytes` keeps its contents. WITNESS discards nothing:
    when it is full it refuses messages, and the sender waits. `read_positions` are the positions up to which
    streams were read before. Raises `LogTruncated` if such a stream is gone, because a new one in its place
    would hide the loss.
    """
    for stream, pattern in names.STREAM_SUBJECTS.items():
        config: dict[str, Any] = {
            "name": stream,
            "subjects": [pattern],
            "storage": "file",
            "num_replicas": replicas,
            "allow_direct": True,
            "duplicate_window": 120 * NANOSECONDS,
            "discard": "old",
            "compression": "none",
            "max_consumers": -1,
            "max_msgs": -1,
            "max_bytes": -1,
            "max_age": 0,
        }
        if stream == names.CONTROL:
            # Broker permissions control who may purge it; `deny_purge` could never be undone (decision 42).
            config |= {"allow_atomic": True, "deny_delete": True}
        elif stream == names.ORDERS:
            config |= {"max_msgs_per_subject": 1}
        elif stream == names.WITNESS:
            config |= _WITNESS_CONFIG | {"max_bytes": keep_bytes}
        else:
            config |= {"max_age": int(keep_days * 86400) * NANOSECONDS, "max_bytes": keep_bytes}
        read_position = (read_positions or {}).get(stream, 0)
        may_shrink = shrink or stream == names.WITNESS
        await ensure_stream(js, config, read_position, adjust=adjust, shrink=may_shrink)


_WITNESS_CONFIG: dict[str, Any] = {
    "discard": "new",
    "discard_new_per_subject": True,
    "max_msgs_per_subject": WITNESS_MESSAGES,
    # The client's headers count, too, and nobody but the broker limits those.
    "max_msg_size": WITNESS_BYTES + 64 * 1024,
    # Nobody reads it so, and a copy that is behind would answer as if what was acknowledged were not there.
    "allow_direct": False,
}
"""Untrusted clients write here, so batches, roll-ups and TTLs stay disabled, as they are by default."""


async def ensure_stream(
    js: JetStreamContext,
    config: dict[str, Any],
    read_position: int = 0,
    *,
    adjust: bool = True,
    shrink: bool = True,
) -> None:
    """Create a stream or, with `adjust`, update it to these settings.

    Without `shrink`, `max_bytes` does not go below what the stream holds. Raises RuntimeError with the
    broker's reason. `read_position` is the position up to which the stream was read; raises `LogTruncated`
    if the stream is gone although it was read.
    """
    began = time.monotonic()
    while problem := await _ensure_once(js, config, read_position, adjust, shrink):
        # Services start together: the broker counts a stream's size once per concurrent request to create it.
        patience = FORMING_PATIENCE_S if problem.code in FORMING_ERRORS else REFUSAL_PATIENCE_S
        if time.monotonic() - began > patience:
            raise LogTruncated(problem.text) if problem.lost else RuntimeError(problem.text)
        await asyncio.sleep(RETRY_S)


class Problem(msgspec.Struct, frozen=True):
    """Why a stream is not as configured."""

    text: str
    code: int = 0
    """The broker's error code."""
    lost: bool = False


async def _ensure_once(
    js: JetStreamContext, config: dict[str, Any], read_position: int, adjust: bool, shrink: bool
) -> Problem | None:
    name = config["name"]
    answer = await request_with_retry(js._nc, f"STREAM.INFO.{name}", {})
    if "error" not in answer:
        if not shrink and config["max_bytes"] > 0:
            config = config | {"max_bytes": max(config["max_bytes"], answer["state"]["bytes"])}
        return await _update_stream(js, config, answer["config"]) if adjust else None
    error = answer["error"]
    if error.get("err_code") != MISSING_STREAM:
        return Problem(f"stream {name}: {error.get('description')}", error.get("err_code", 0))
    if read_position:
        text = (
            f"stream {name} is gone, but position {read_position} was read already. "
            f"{recovery_advice(name, read_position)}"
        )
        return Problem(text, lost=True)
    return await _send_config(js, f"STREAM.CREATE.{name}", config)


async def _update_stream(
    js: JetStreamContext, config: dict[str, Any], current_config: dict[str, Any]
) -> Problem | None:
    if current_config.get("persist_mode") == "async":
        if config["num_replicas"] > 1:
            return Problem(
                f"stream {config['name']} {LAZY_FLUSH_PROBLEM}; it cannot be replicated. {REMAKE_ADVICE}"
            )
        log.warning(
            "stream.flushed_lazily", stream=config["name"], advice=f"It {LAZY_FLUSH_PROBLEM}. {REMAKE_ADVICE}"
        )
    # The broker leaves out what is zero or false, so those cannot be compared.
    if all(current_config.get(key) == value for key, value in config.items() if value):
        return None
    # Over what it has: what an operator has set beside our settings, such as placement, stays.
    return await _send_config(js, f"STREAM.UPDATE.{config['name']}", current_config | config)


async def _send_config(js: JetStreamContext, subject: str, config: dict[str, Any]) -> Problem | None:
    answer = await request_with_retry(js._nc, subject, config)
    if "error" not in answer:
        return None
    error = answer["error"]
    return Problem(f"the broker refused {subject}: {error.get('description')}", error.get("err_code", 0))
