"""Two pages on loopback for those who look after a service: /healthz and /metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress


class HealthServer:
    """Answers GET /healthz (200, or 503 with the reason) and GET /metrics (Prometheus' text format)."""

    def __init__(self, well: Callable[[], str | None], metrics: Callable[[], bytes]) -> None:
        """`well` returns None, or in words what is wrong."""
        self._well = well
        self._metrics = metrics
        self._server: asyncio.Server | None = None

    async def start(self, port: int) -> int:
        """Listen on loopback; returns the port, which is chosen freely for 0."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, TimeoutError, ValueError):
            request = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)).split()
            status, body = self._page(request[1].decode() if len(request) > 1 else "")
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
            )
            writer.write(body)
            await writer.drain()
        writer.close()

    def _page(self, path: str) -> tuple[str, bytes]:
        if path == "/metrics":
            return "200 OK", self._metrics()
        if path == "/healthz":
            wrong = self._well()
            if wrong is not None:
                return "503 Service Unavailable", f"{wrong}\n".encode()
            return "200 OK", b"ok\n"
        return "404 Not Found", b"there are /healthz and /metrics\n"
