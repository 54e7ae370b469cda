"""Answers that take long: what they hold is let go of at once when their client goes away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import httpx
import structlog
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from det_contracts.problems import Refused
from services.catalogue.waiting import Fact
from services.kit.checkpoint_files import FilesMissing
from services.kit.task_ending import end, keep
from services.web.tunnels import EXTENSION, Connection

if TYPE_CHECKING:
    from services.gateway.http.visit import UserVisit

T = TypeVar("T")
log = structlog.get_logger()
MAY_END_EARLY = (Refused, FilesMissing, httpx.HTTPError)
"""What an owner, a storage or a task may do in the midst of what it sends; all else is a fault of ours."""


class Stream(StreamingResponse):
    """An answer in parts, of an asynchronous generator.

    When the client has gone away the generator is cancelled once, and may take its time to let go of what it
    holds; the base class cancels it again at each await of that.
    """

    def __init__(
        self,
        content: AsyncIterable[bytes],
        *,
        visit: UserVisit | None = None,
        release: Callable[[], Awaitable[object]] | None = None,
        **more: Any,
    ) -> None:
        """`visit`: whose it is, where it counts among those of its user.

        `release` is called at the end, also of an answer that was never begun.
        """
        super().__init__(content, **more)
        self._visit = visit
        self._release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it all, or as much as somebody takes; raises `Busy` before anything is sent."""
        try:
            async with _counted(self._visit):
                await self._while_there(scope, receive, send)
        finally:
            if self._release is not None:
                # Whatever happens to us meanwhile.
                releasing = asyncio.ensure_future(self._release())
                keep(releasing)
                await asyncio.shield(releasing)

    async def _while_there(self, scope: Scope, receive: Receive, send: Send) -> None:
        work = asyncio.ensure_future(self.stream_response(send))
        gone = asyncio.ensure_future(self.listen_for_disconnect(receive))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end(work, gone)
        error = None if work.cancelled() else work.exception()
        if error is not None and not _broken_off(scope, error):
            raise error

    async def stream_response(self, send: Send) -> None:
        """Send all parts, each when the one before it is taken."""

        async def send_and_wait(message: Message) -> None:
            await send(message)
            if message.get("more_body"):
                # The server waits for its client before it takes a part. Without this the next part is made,
                # of several MiB perhaps, while nobody may ever take the one before it.
                await send({"type": "http.response.body", "body": b"", "more_body": True})

        try:
            await super().stream_response(send_and_wait)
        finally:
            # Where the client was too slow the generator waits for it, and has heard of nothing.
            if isinstance(self.body_iterator, AsyncGenerator):
                await self.body_iterator.aclose()


async def begun(parts: AsyncIterator[T]) -> AsyncIterator[T]:
    """The same parts, of which the first is there: what is wrong from the start is an error at once."""
    try:
        first = await anext(parts)
    except StopAsyncIteration:
        return parts
    return _behind(first, parts)


async def _behind(first: T, others: AsyncIterator[T]) -> AsyncIterator[T]:
    yield first
    async for one in others:
        yield one


def _broken_off(scope: Scope, error: BaseException) -> bool:
    """Whether there is no more to be had of what is sent, through no fault of ours; the client is told by the
    end of its connection, since its answer has begun already."""
    connection: Connection | None = scope.get("extensions", {}).get(EXTENSION)
    if connection is None or not isinstance(error, MAY_END_EARLY):
        return False
    log.warning("answer.broken_off", path=scope["path"], why=repr(error))
    connection.break_off()
    return True


def _counted(visit: UserVisit | None) -> AbstractAsyncContextManager[None]:
    if visit is None:
        return nullcontext()
    return visit.backend.limits.streams.place(visit.user.username)


async def wait_until(visit: UserVisit, fact: Fact, seconds: float) -> bool:
    """Wait for a fact, some seconds at most; returns whether somebody still waits for the answer.

    Raises `Busy` where too many wait for its user.
    """
    if fact.holds(visit.catalogue.state):
        return True
    async with _counted(visit):
        return await _until_gone(visit, fact, seconds)


async def _until_gone(visit: UserVisit, fact: Fact, seconds: float) -> bool:
    waiting = asyncio.ensure_future(visit.catalogue.until(fact))
    gone = asyncio.ensure_future(_gone(visit))
    try:
        await asyncio.wait({waiting, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await end(waiting, gone)
    if not waiting.cancelled():
        waiting.result()
    return gone.cancelled()


async def _gone(visit: UserVisit) -> None:
    """Return when the client has hung up."""
    while (await visit.request.receive())["type"] != "http.disconnect":
        pass
