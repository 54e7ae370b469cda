"""Asks a task to upgrade a connection from HTTP, as for a WebSocket."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable

import h11
import msgspec
from starlette.requests import Request

PROTOCOL = "websocket"
CONNECT_S = 5.0
CHUNK = 64 << 10
LARGEST_HEAD = 32 << 10
FORWARDED_HEADERS = {
    "sec-websocket-accept", "sec-websocket-protocol", "sec-websocket-extensions", "sec-websocket-version",
}  # fmt: skip
"""Headers of the task's agreement that are passed to the client."""
Headers = list[tuple[str, str]]
"""Decoded as Latin-1, so that every byte is preserved."""


class UpgradeRefused(Exception):
    """The task answered with a status other than 101."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the task answered {status}")
        self.status = status


class UpgradedConnection(msgspec.Struct, frozen=True):
    """A connection to a task that has left HTTP."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    headers: Headers
    first: bytes
    """Bytes that already arrived after the agreement."""


def as_bytes(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Encode headers for sending. Libraries given text accept ASCII only."""
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def as_text(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Decode headers as received."""
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]


def is_upgrade(request: Request) -> bool:
    """Whether a request asks to become a WebSocket. A request with a body cannot."""
    headers = request.headers
    wants_websocket = headers.get("upgrade", "").lower() == PROTOCOL
    listed = {word.strip().lower() for word in headers.get("connection", "").split(",")}
    has_body = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
    return request.method == "GET" and wants_websocket and "upgrade" in listed and not has_body


@contextlib.asynccontextmanager
async def request_upgrade(address: str, target: bytes, headers: Headers) -> AsyncIterator[UpgradedConnection]:
    """Request the upgrade at `host:port`. The connection is closed at the end of the block.

    Raises `UpgradeRefused`, or OSError or `h11.RemoteProtocolError` if there is no valid HTTP answer.
    """
    host, _, port = address.rpartition(":")
    async with asyncio.timeout(CONNECT_S):
        reader, writer = await asyncio.open_connection(host, int(port), limit=CHUNK)
    try:
        yield await _handshake(reader, writer, address, target, headers)
    finally:
        writer.transport.abort()


async def _handshake(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str, target: bytes, headers: Headers
) -> UpgradedConnection:
    # A task's answer is no more trusted than a client's request.
    http_connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=LARGEST_HEAD)
    own = [("host", address), ("connection", "Upgrade"), ("upgrade", PROTOCOL)]
    request = h11.Request(method="GET", target=target, headers=as_bytes([*own, *headers]))
    writer.write((http_connection.send(request) or b"") + (http_connection.send(h11.EndOfMessage()) or b""))
    await writer.drain()
    while True:
        event = http_connection.next_event()
        if event is h11.NEED_DATA:
            http_connection.receive_data(await reader.read(CHUNK))
        elif isinstance(event, h11.InformationalResponse):
            if event.status_code == 101:
                # Any other header, such as a cookie, would be set for the gateway's own address.
                forwarded = [
                    (name, value) for name, value in as_text(event.headers) if name in FORWARDED_HEADERS
                ]
                return UpgradedConnection(reader, writer, forwarded, http_connection.trailing_data[0])
        elif isinstance(event, h11.Response):
            raise UpgradeRefused(event.status_code)
        else:
            raise h11.RemoteProtocolError("it closed the connection without an answer")
