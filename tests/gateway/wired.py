"""The gateway of a test with a real port, and what is answered there byte by byte."""

import asyncio
import contextlib

from services.gateway.http.server import listening_socket, serve
from services.web.connection import Connections


@contextlib.asynccontextmanager
async def wired(gateway):
    """Serve; yields the port."""
    listener = listening_socket("127.0.0.1", 0)
    listener.listen()
    serving = asyncio.ensure_future(serve(gateway.app, listener, Connections(100, 100)))
    try:
        yield listener.getsockname()[1]
    finally:
        serving.cancel()
        await asyncio.wait([serving])


async def answered(port, *parts):
    """All that is answered to a request that comes in parts, until its connection is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    received = b""
    with contextlib.suppress(ConnectionError):
        for part in parts:
            writer.write(part)
            await writer.drain()
    with contextlib.suppress(ConnectionError):
        while chunk := await reader.read(1 << 16):
            received += chunk
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    return received


def got(gateway, path, headers=b""):
    """All that is answered when somebody who is signed in asks for a path."""

    async def ask():
        token = gateway.client.headers["Authorization"]
        first = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: {token}\r\n"
        async with wired(gateway) as port:
            return await answered(port, first.encode() + headers + b"\r\n")

    return gateway.run(ask())
