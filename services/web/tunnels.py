"""Connections that are no longer HTTP: what comes from one side is handed to the other as it is.

Both sides are read only as fast as the other one takes it, so a tunnel holds a few buffers and no more. One
whose client or task takes nothing for minutes is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from det_contracts.problems import Refused
from services.kit.admission import Admission
from services.kit.task_ending import end
from services.web.paced import PLACE
from services.web.upgrades import CHUNK, PROTOCOL, Agreed, Headers

EXTENSION = "steadfast.tunnel"
"""In a request's scope: the connection that it came by, for those who do more with it than answer."""
RECHECK_S = 15.0
STALLED_S = 300.0
"""How long somebody may take nothing of what there is for them."""
FLUSH_S = 10.0
"""How long the last bytes may take to reach somebody."""
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Connection(Protocol):
    """What a client came by."""

    def take_over(self, headers: Headers) -> Streams:
        """Agree to leave HTTP; from here on its bytes are the caller's."""

    def break_off(self) -> None:
        """Close the connection in the midst of an answer, so that its client knows that there is more."""


class Tunnel(Response):
    """An answer that joins the client with a task, until either goes away or the client may no longer."""

    def __init__(
        self,
        task: Agreed,
        *,
        places: Admission,
        who: str,
        recheck: Callable[[], None],
        release: Callable[[], Awaitable[object]],
    ) -> None:
        """`who` takes one of the `places`; `recheck` raises `Refused` when they may go on no longer."""
        super().__init__(status_code=101)
        self._task, self._places, self._who = task, places, who
        self._recheck, self._release = recheck, release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Join the two; raises `Busy` before anything is agreed."""
        try:
            async with self._places.place(self._who):
                connection: Connection = scope["extensions"][EXTENSION]
                client = connection.take_over([("upgrade", PROTOCOL), *self._task.headers])
                if PLACE in scope:
                    # A place among requests is held until the answer begins.
                    scope[PLACE].leave()
                await _joined(client, self._task, self._recheck)
        finally:
            await self._release()


async def _joined(client: Streams, task: Agreed, recheck: Callable[[], None]) -> None:
    to_client, to_task = client[1], task.writer
    to_client.write(task.first)
    works = (
        asyncio.create_task(_hand_on(client[0], to_task)),
        asyncio.create_task(_hand_on(task.reader, to_client)),
        asyncio.create_task(_while_allowed(recheck)),
    )
    try:
        await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await end(*works)
        await asyncio.gather(_closed(to_client), _closed(to_task))


async def _hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            if not await _taken(writer):
                return
    except OSError:
        # One of the two has gone: the other one is told by the end.
        return


async def _taken(writer: asyncio.StreamWriter) -> bool:
    """Wait until there is room for more; False when nothing is taken for too long."""
    left = writer.transport.get_write_buffer_size()
    while True:
        try:
            async with asyncio.timeout(STALLED_S):
                await writer.drain()
            return True
        except TimeoutError:
            now = writer.transport.get_write_buffer_size()
            if now >= left:
                return False
            left = now


async def _while_allowed(recheck: Callable[[], None]) -> None:
    while True:
        await asyncio.sleep(RECHECK_S)
        try:
            recheck()
        except Refused:
            return


async def _closed(writer: asyncio.StreamWriter) -> None:
    """Send what is left, for a while."""
    writer.close()
    try:
        async with asyncio.timeout(FLUSH_S):
            await writer.wait_closed()
    except (OSError, TimeoutError):
        writer.transport.abort()
