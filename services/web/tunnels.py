"""Tunnels for connections that have left HTTP: bytes are forwarded unchanged in both directions.

Each side is read only as fast as the other accepts data, so a tunnel holds just a few buffers. A tunnel is
closed if its client or task accepts nothing for minutes.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from det_contracts.problems import Refused
from services.kit.admission import Admission
from services.kit.cancellation import cancel_and_wait, finish
from services.web.pacing_middleware import SLOT_KEY
from services.web.turns import Turns
from services.web.upgrades import CHUNK, PROTOCOL, Headers, UpgradedConnection

EXTENSION = "steadfast.tunnel"
"""Scope key of the request's connection, for handlers that do more than answer."""
RECHECK_S = 15.0
STALL_TIMEOUT_S = 300.0
"""Seconds for which a side may accept no data."""
FLUSH_TIMEOUT_S = 10.0
"""Seconds allowed for sending the last bytes."""
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Connection(Protocol):
    """A client's connection."""

    def take_over(self, headers: Headers) -> Streams:
        """Agree to leave HTTP. All further bytes belong to the caller."""

    def break_off(self) -> None:
        """Close the connection in the middle of an answer, so that the client notices it is incomplete."""


class Tunnel(Response):
    """An answer that connects the client with a task, until either disconnects or the permission ends."""

    def __init__(
        self,
        task: UpgradedConnection,
        *,
        admission: Admission,
        who: str,
        turns: Turns,
        recheck: Callable[[], None],
        release: Callable[[], Awaitable[object]],
    ) -> None:
        """`who` occupies one of the `admission`, and takes `turns` to send and receive. `recheck` raises
        `Refused` once the permission has ended.
        """
        super().__init__(status_code=101)
        self._task, self._admission, self._who, self._turns = task, admission, who, turns
        self._recheck, self._release = recheck, release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Connect the two. Raises `Busy` before agreeing to anything."""
        try:
            # The place is taken before the client is agreed to, after which nothing can be refused any more.
            async with self._admission.hold(self._who):
                connection: Connection = scope["extensions"][EXTENSION]
                client = connection.take_over([("upgrade", PROTOCOL), *self._task.headers])
                if SLOT_KEY in scope:
                    # Requests hold their place until the answer begins, which it does now.
                    scope[SLOT_KEY].release()
                take_turn = functools.partial(self._turns.take, self._who)
                await _run_tunnel(client, self._task, self._recheck, take_turn)
        finally:
            await finish(self._release())


async def _run_tunnel(
    client: Streams,
    task: UpgradedConnection,
    recheck: Callable[[], None],
    take_turn: Callable[[], Awaitable[None]],
) -> None:
    to_client, to_task = client[1], task.writer
    to_client.write(task.first)
    tasks = (
        asyncio.create_task(_copy(client[0], to_task, take_turn)),
        asyncio.create_task(_copy(task.reader, to_client, take_turn)),
        asyncio.create_task(_until_forbidden(recheck)),
    )
    try:
        # A WebSocket is closed as a whole: once one direction has ended, nobody reads the other.
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await finish(_end(tasks, to_client, to_task))


async def _end(tasks: Sequence[asyncio.Task[None]], *writers: asyncio.StreamWriter) -> None:
    await cancel_and_wait(*tasks)
    await asyncio.gather(*map(_close, writers))


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, take_turn: Callable[[], Awaitable[None]]
) -> None:
    try:
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            if not await _drain(writer):
                return
            await take_turn()
    except OSError:
        # One side is gone; ending the tunnel tells the other.
        return


async def _drain(writer: asyncio.StreamWriter) -> bool:
    """Wait until there is room for more. Returns False if nothing is accepted for too long."""
    left = writer.transport.get_write_buffer_size()
    while True:
        try:
            async with asyncio.timeout(STALL_TIMEOUT_S):
                await writer.drain()
            return True
        except TimeoutError:
            now = writer.transport.get_write_buffer_size()
            # A slow side that still takes some bytes is left alone.
            if now >= left:
                return False
            left = now


async def _until_forbidden(recheck: Callable[[], None]) -> None:
    while True:
        await asyncio.sleep(RECHECK_S)
        try:
            recheck()
        except Refused:
            return


async def _close(writer: asyncio.StreamWriter) -> None:
    """Send what is left, within a time limit."""
    writer.close()
    try:
        async with asyncio.timeout(FLUSH_TIMEOUT_S):
            await writer.wait_closed()
    except (OSError, TimeoutError):
        writer.transport.abort()
