"""Two pages for those who look after a service: /healthz and /metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from services.kit.measures import Measures
from services.kit.settings import ServiceSettings

log = structlog.get_logger()


class HealthServer:
    """Answers GET /healthz (200, or 503 with the reason) and GET /metrics (Prometheus' text format)."""

    def __init__(self, well: Callable[[], str | None], metrics: Callable[[], Awaitable[bytes]]) -> None:
        """`well` returns None, or in words what is wrong."""
        self._well = well
        self._metrics = metrics
        self._server: asyncio.Server | None = None

    async def start(self, port: int, host: str = "127.0.0.1") -> int:
        """Listen; returns the port, which is chosen freely for 0."""
        self._server = await asyncio.start_server(self._serve, host, port)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, TimeoutError, ValueError):
            async with asyncio.timeout(5):
                request = (await reader.readuntil(b"\r\n\r\n")).split()
            status, body = await self._page(request[1].decode() if len(request) > 1 else "")
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
            )
            writer.write(body)
            await writer.drain()
        writer.close()

    async def _page(self, path: str) -> tuple[str, bytes]:
        if path == "/metrics":
            try:
                return "200 OK", await self._metrics()
            except Exception as error:
                log.exception("metrics.failed")
                return "500 Internal Server Error", f"{error!r}\n".encode()
        if path == "/healthz":
            wrong = self._well()
            if wrong is not None:
                return "503 Service Unavailable", f"{wrong}\n".encode()
            return "200 OK", b"ok\n"
        return "404 Not Found", b"there are /healthz and /metrics\n"


async def show(
    measures: Measures, settings: ServiceSettings, unwell: Callable[[], str | None]
) -> Callable[[], Awaitable[None]]:
    """Open the pages where settings ask for it; returns what closes them."""
    health = HealthServer(unwell, measures.text)
    if settings.health_port is not None:
        try:
            port = await health.start(settings.health_port, settings.health_host)
            log.info("health.listening", port=port)
        except OSError as error:
            # To be looked at is worth less than to run.
            log.error("health.unavailable", port=settings.health_port, error=str(error))
    return health.stop
