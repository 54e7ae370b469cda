"""The log in NATS JetStream.

Appending uses atomic batches (`Nats-Batch-*` headers; the client library has no helper for them),
fenced by `Nats-Expected-Last-Subject-Sequence` on the first message. Reading is in `jetstream_feed`.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.client import JetStreamContext

from det_contracts import subjects as names
from services.kit.jetstream_feed import JetStreamFeed
from services.kit.log import (
    BATCH_LIMIT,
    Draft,
    Fence,
    FenceLost,
    NotStored,
    OutcomeUnknown,
    Stored,
    TooLarge,
)
from services.kit.trail import HEADER

REFUSED = (10071, 10164, 10201)
"""Wrong last sequence, on a stream or a subject; a batch that repeats a stored message."""
HEADERS_BYTES = 512
"""What the names of all headers of a message and their frame take, at most."""
ACK_TIMEOUT_S = 2.0
APPEND_PATIENCE_S = 30.0
REFUSAL_PATIENCE_S = 5.0
"""How long a stream is asked for again that the broker does not want to make."""
RETRY_S = 0.2
NANOSECONDS = 1_000_000_000
AWAY = (NatsError, TimeoutError, OSError)


class Ack(msgspec.Struct):
    """What the broker answers to a stored message or batch."""

    seq: int = 0
    error: dict[str, Any] | None = None


class JetStreamLog:
    """Implements `services.kit.log.Log` on a connection."""

    def __init__(self, connection: Client) -> None:
        self._connection = connection

    async def append(self, draft: Draft) -> int:
        deadline = time.monotonic() + APPEND_PATIENCE_S
        while True:
            try:
                return await self._publish(draft.subject, draft.body, _headers(draft))
            except TooLarge:
                raise
            except (OutcomeUnknown, NotStored):
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(RETRY_S)

    async def append_batch(self, drafts: Sequence[Draft], *, fence: Fence) -> int:
        if len(drafts) > BATCH_LIMIT:
            raise ValueError(f"a batch takes {BATCH_LIMIT} messages, not {len(drafts)}")
        if drafts[0].subject != fence.subject:
            raise ValueError(f"the batch must begin on {fence.subject}, not on {drafts[0].subject}")
        for draft in drafts:
            self._check_size(draft.subject, draft.body, _headers(draft))
        batch = uuid.uuid4().hex
        headers = {"Nats-Expected-Last-Subject-Sequence": str(fence.last)}
        try:
            for number, draft in enumerate(drafts, 1):
                headers |= _headers(draft) | {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(number)}
                if number < len(drafts):
                    await self._connection.publish(draft.subject, draft.body, headers=headers)
                    headers = {}
        except AWAY as error:
            raise OutcomeUnknown(f"the batch could not be sent whole: {error!r}") from error
        headers["Nats-Batch-Commit"] = "1"
        return await self._publish(drafts[-1].subject, drafts[-1].body, headers)

    def _check_size(self, subject: str, body: bytes, headers: dict[str, str]) -> None:
        """The client looks at the body alone; the broker adds the headers, and closes the connection."""
        size, most = len(body) + HEADERS_BYTES + sum(map(len, headers.values())), self._connection.max_payload
        if size > most:
            raise TooLarge(f"{subject}: {size:,} bytes with headers, the broker takes {most:,}")

    async def _publish(self, subject: str, body: bytes, headers: dict[str, str]) -> int:
        self._check_size(subject, body, headers)
        try:
            reply = await self._connection.request(subject, body, timeout=ACK_TIMEOUT_S, headers=headers)
        except AWAY as error:
            raise OutcomeUnknown(f"no answer for {subject}: {error!r}") from error
        ack = msgspec.json.decode(reply.data, type=Ack)
        if ack.error is None:
            return ack.seq
        if ack.error.get("err_code") in REFUSED:
            raise FenceLost(f"{subject}: {ack.error.get('description')}")
        raise NotStored(f"{subject}: {ack.error.get('description')} ({ack.error.get('err_code')})")

    @asynccontextmanager
    async def read(
        self, stream: str, *, after: int, subjects: Sequence[str] = ()
    ) -> AsyncIterator[JetStreamFeed]:
        feed = JetStreamFeed(self._connection, stream, after, subjects)
        try:
            await feed.open()
            yield feed
        finally:
            await feed.close()

    async def last(self, subject: str) -> Stored | None:
        while True:
            try:
                reply = await self._connection.request(
                    f"$JS.API.DIRECT.GET.{names.CONTROL}.{subject}", b"", timeout=ACK_TIMEOUT_S
                )
                break
            except AWAY:
                await asyncio.sleep(RETRY_S)
        headers = reply.headers or {}
        if "Nats-Sequence" not in headers:
            return None
        return Stored(subject, int(headers["Nats-Sequence"]), reply.data)

    async def bounds(self, stream: str) -> tuple[int, int]:
        state = await self.state(stream)
        return int(state["first_seq"]) or 1, int(state["last_seq"])

    async def state(self, stream: str) -> dict[str, Any]:
        """What the broker says of a stream: `first_seq`, `last_seq`, `messages`, `bytes`, ..."""
        try:
            reply = await self._connection.request(
                f"$JS.API.STREAM.INFO.{stream}", b"", timeout=ACK_TIMEOUT_S
            )
        except AWAY as error:
            raise OutcomeUnknown(f"no answer about stream {stream}: {error!r}") from error
        answer = msgspec.json.decode(reply.data)
        if "error" in answer:
            raise OutcomeUnknown(f"stream {stream}: {answer['error'].get('description')}")
        found: dict[str, Any] = answer["state"]
        return found


def _headers(draft: Draft) -> dict[str, str]:
    traced = {HEADER: draft.trace} if draft.trace else {}
    return {"Nats-Msg-Id": draft.id} | traced


async def ensure_streams(
    js: JetStreamContext, *, replicas: int = 1, keep_days: float = 30.0, keep_bytes: int = 16 << 30
) -> None:
    """Make the three streams, or bring them to these settings.

    CONTROL is kept for ever and flushed before each ack (the broker's `sync_interval: always`). REPORTS and
    LOGS are bounded by age and size, and compressed; with a single copy they are flushed lazily.
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
            "max_consumers": -1,
            "max_msgs": -1,
            "max_bytes": -1,
            "max_age": 0,
        }
        if stream == names.CONTROL:
            config |= {"allow_atomic": True, "deny_delete": True, "deny_purge": True}
        else:
            config |= {"max_age": int(keep_days * 86400) * NANOSECONDS, "max_bytes": keep_bytes}
            config |= {"compression": "s2"}
            config |= {"persist_mode": "async"} if replicas == 1 else {}
        await _ensure(js, config)


async def _ensure(js: JetStreamContext, config: dict[str, Any]) -> None:
    deadline = time.monotonic() + REFUSAL_PATIENCE_S
    while problem := await _refusal(js, config):
        # Services begin together: while one makes a stream, its size is counted for each that asks for it.
        if time.monotonic() > deadline:
            raise RuntimeError(problem)
        await asyncio.sleep(RETRY_S)


async def _refusal(js: JetStreamContext, config: dict[str, Any]) -> str:
    """Make a stream or bring it to its settings; returns why the broker would not, empty when all is well."""
    name = config["name"]
    known = await _api(js, f"STREAM.INFO.{name}", {})
    if "error" in known:
        subject, body = f"STREAM.CREATE.{name}", config
    elif any(known["config"].get(key) != value for key, value in config.items() if value):
        subject, body = f"STREAM.UPDATE.{name}", known["config"] | config
    else:
        return ""
    answer = await _api(js, subject, body)
    return f"the broker refused {subject}: {answer['error'].get('description')}" if "error" in answer else ""


async def _api(js: JetStreamContext, subject: str, body: dict[str, Any]) -> dict[str, Any]:
    deadline = time.monotonic() + APPEND_PATIENCE_S
    while True:
        try:
            reply = await js._nc.request(
                f"$JS.API.{subject}", msgspec.json.encode(body), timeout=ACK_TIMEOUT_S
            )
            break
        except AWAY:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(RETRY_S)
    answer: dict[str, Any] = msgspec.json.decode(reply.data)
    return answer
