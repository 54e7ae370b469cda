"""Long-running answers, which release their resources as soon as the client disconnects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeVar

import httpx
import structlog
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from det_contracts.problems import Refused
from services.catalogue.waiters import Fact
from services.kit.cancellation import cancel_and_wait, finish
from services.kit.checkpoint_files import FilesMissing
from services.web.tunnels import EXTENSION, Connection

if TYPE_CHECKING:
    from services.rest_requests.api_call import UserCall

T = TypeVar("T")
log = structlog.get_logger()
STREAM_ERRORS = (Refused, FilesMissing, httpx.HTTPError)
"""Errors of an owner, a storage or a task that may end a stream midway. Any other is a defect of the gateway.
"""


class Stream(StreamingResponse):
    """An answer streamed from an asynchronous generator.

    When the client disconnects, the generator is cancelled once and may then take its time to clean up. The
    base class would cancel it again at every await of that cleanup.
    """

    def __init__(
        self,
        content: AsyncIterable[bytes],
        *,
        call: UserCall,
        passed_on: bool = False,
        release: Callable[[], Awaitable[object]] | None = None,
        **more: Any,
    ) -> None:
        """`call`: whose limit the stream counts against.

        `passed_on`: whether the parts are only passed on, or made once for many streams. All others are
        made for this one, at most about a hundred records each, which costs more than to send them.
        `release` is called at the end, even if the answer was never started.
        """
        super().__init__(content, **more)
        self._call = call
        self._turns_per_part = 0 if passed_on else 1
        self._release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream until it ends or the client disconnects. Raises `Busy` before sending anything."""
        try:
            async with _stream_slot(self._call):
                await self._send_until_disconnect(scope, receive, send)
        finally:
            if self._release is not None:
                await finish(self._release())

    async def _send_until_disconnect(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self.stream_response(send))
        disconnected = asyncio.ensure_future(self.listen_for_disconnect(receive))
        try:
            await asyncio.wait({sending, disconnected}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel_and_wait(sending, disconnected)
        error = None if sending.cancelled() else sending.exception()
        if error is not None and not _close_if_expected(scope, error):
            raise error

    async def stream_response(self, send: Send) -> None:
        """Send all parts, each one in its turn and after the client has accepted the one before."""
        turns, who, unpaid = self._call.backend.limits.data_turns, self._call.user.username, 0

        async def send_and_wait(message: Message) -> None:
            nonlocal unpaid
            await send(message)
            if message.get("more_body"):
                # The server waits for the client before it accepts the next message. Without this empty
                # message, the next part, possibly several MiB, would be built while the previous one may
                # never be accepted.
                await send({"type": "http.response.body", "body": b"", "more_body": True})
                unpaid = await turns.take_for(who, unpaid + len(message["body"]), self._turns_per_part)

        try:
            await super().stream_response(send_and_wait)
        finally:
            # If the client was too slow, the generator is suspended at a yield and was not cancelled.
            if isinstance(self.body_iterator, AsyncGenerator):
                await self.body_iterator.aclose()


async def prefetch_first(parts: AsyncIterator[T]) -> AsyncIterator[T]:
    """Wait for the first part, so that an early failure becomes an ordinary error; return all parts."""
    try:
        first = await anext(parts)
    except StopAsyncIteration:
        return parts
    return _prepend(first, parts)


async def _prepend(first: T, others: AsyncIterator[T]) -> AsyncIterator[T]:
    yield first
    async for part in others:
        yield part


def _close_if_expected(scope: Scope, error: BaseException) -> bool:
    """Whether the stream was cut short by a failure that is not the gateway's own.

    The answer has already begun, so the client only learns of it from its closed connection.
    """
    connection: Connection | None = scope.get("extensions", {}).get(EXTENSION)
    if connection is None or not isinstance(error, STREAM_ERRORS):
        return False
    log.warning("answer.broken_off", path=scope["path"], why=repr(error))
    connection.break_off()
    return True


def _stream_slot(call: UserCall) -> AbstractAsyncContextManager[None]:
    return call.backend.limits.streams.hold(call.user.username)


async def wait_until(call: UserCall, fact: Fact, seconds: float) -> bool:
    """Wait up to `seconds` for a fact; return whether the client is still connected.

    Raises `Busy` if too many requests of this user are waiting.
    """
    # Without a slot: whoever need not wait takes nobody's place.
    if call.catalogue.waiters.holds(fact):
        return True
    async with _stream_slot(call):
        return await _wait_until_or_disconnect(call, fact, seconds)


async def _wait_until_or_disconnect(call: UserCall, fact: Fact, seconds: float) -> bool:
    waiting = asyncio.ensure_future(call.catalogue.wait_until(fact))
    disconnected = asyncio.ensure_future(_disconnected(call))
    try:
        await asyncio.wait({waiting, disconnected}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel_and_wait(waiting, disconnected)
    if not waiting.cancelled():
        waiting.result()
    return disconnected.cancelled()


async def while_connected(call: UserCall, items: Iterable[T]) -> AsyncIterator[T]:
    """The items of a request, each of which causes a command, until the client has disconnected.

    One request may name thousands, and who does not wait for the answer could send any number of requests.
    """
    for item in items:
        if await call.request.is_disconnected():
            return
        yield item


async def _disconnected(call: UserCall) -> None:
    """Return when the client has disconnected."""
    while (await call.request.receive())["type"] != "http.disconnect":
        pass
