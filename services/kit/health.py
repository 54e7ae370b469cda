"""HTTP pages for operators: the health of a process and its metrics.

| page | says |
|---|---|
| `/healthz` | 200, or 503 with everything that is wrong, one problem per line: what, since when, what to do |
| `/readyz` | 503 if this process cannot serve requests, although another might |
| `/livez` | 200 as long as this process can answer at all, whatever else is down |
| `/metrics` | metrics in Prometheus' text format |

Separate threads serve them, so that they answer while the event loop is blocked.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterable

import structlog
from prometheus_client import CollectorRegistry, generate_latest

from services.kit.conditions import KINDS, Conditions, Trouble
from services.kit.process_metrics import Measures

METRICS_S = 3.0
"""Seconds the event loop may take to collect the metrics."""
REQUEST_S = 5.0
MAX_REQUESTS = 16
"""Maximum number of concurrent requests. A further one takes the place of one that has not asked yet."""
SILENCE_S = 0.2
"""Seconds for which a client that has not asked keeps its place. Probes ask as soon as they are connected."""
MAX_REQUEST_BYTES = 8192
BACKLOG = 128
PAUSE_S = 0.1

log = structlog.get_logger()


class HealthPages:
    """Serves the health pages of this process."""

    def __init__(self, conditions: Conditions, measures: Measures) -> None:
        self._conditions = conditions
        self._measures = measures
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listener: socket.socket | None = None
        self._tls: ssl.SSLContext | None = None
        self._open = 0
        """Number of connections."""
        self._silent: dict[socket.socket, float] = {}
        """Those that have not asked yet, oldest first, and since when."""
        self._counting = threading.Lock()
        self._loop_free_registry = CollectorRegistry()
        """The metrics available without the event loop."""
        measures.register(conditions.readings)
        measures.register(conditions.readings, registry=self._loop_free_registry)

    def start(self, port: int, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> int:
        """Listen, with TLS if a context is given. Returns the port; 0 picks a free one. Raises OSError.

        Must be called on the event loop that collects the metrics.
        """
        self._loop, self._tls = asyncio.get_running_loop(), tls
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
        threading.Thread(target=self._serve, args=[self._listener], daemon=True, name="health-pages").start()
        return int(self._listener.getsockname()[1])

    def stop(self) -> None:
        """Stop listening."""
        listener, self._listener = self._listener, None
        if listener is not None:
            # Closing alone would leave the accepting thread blocked.
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def _serve(self, listener: socket.socket) -> None:
        while self._listener is listener:
            try:
                connection, _ = listener.accept()
                handle = connection.dup()
            except OSError:
                # Out of file descriptors for the moment, or stopped.
                time.sleep(PAUSE_S)
                continue
            if self._take_place(handle):
                threading.Thread(target=self._answer, args=[connection, handle], daemon=True).start()
            else:
                handle.close()
                connection.close()

    def _take_place(self, handle: socket.socket) -> bool:
        """Whether a connection may stay. TLS takes its socket over, so it is known by another handle."""
        with self._counting:
            if self._open >= MAX_REQUESTS:
                oldest, since = next(iter(self._silent.items()), (None, 0.0))
                # Somebody who connects and is silent must not keep probes out, and a probe must not be thrown
                # out while it is about to ask.
                if oldest is None or time.monotonic() - since < SILENCE_S:
                    return False
                del self._silent[oldest]
                # The thread that reads from it ends, and closes it.
                with contextlib.suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
            self._open += 1
            self._silent[handle] = time.monotonic()
            return True

    def _answer(self, connection: socket.socket, handle: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError), self._wrap_tls(connection) as opened:
                request_line = _head(opened).split(maxsplit=2)
                with self._counting:
                    self._silent.pop(handle, None)
                status, body = self.page(request_line[1].partition("?")[0] if len(request_line) > 1 else "")
                head = (
                    f"HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                    f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                )
                opened.settimeout(REQUEST_S)
                opened.sendall(head.encode() + body)
        finally:
            with self._counting:
                self._open -= 1
                self._silent.pop(handle, None)
                handle.close()

    def _wrap_tls(self, connection: socket.socket) -> socket.socket:
        """Return the connection to use. Raises OSError after closing it."""
        if self._tls is None:
            return connection
        connection.settimeout(REQUEST_S)
        try:
            return self._tls.wrap_socket(connection, server_side=True)
        except BaseException:
            connection.close()
            raise

    def page(self, path: str) -> tuple[str, bytes]:
        """Return status line and body of a page."""
        match path:
            case "/healthz":
                return _page_of(trouble.line() for trouble in self._conditions.current())
            case "/readyz":
                return _page_of(
                    trouble.line()
                    for trouble in self._conditions.current()
                    if not KINDS[trouble.condition].serves_requests
                )
            case "/livez":
                # A process that only a restart can help exits on its own.
                return _page_of(())
            case "/metrics":
                return self._metrics()
        return "404 Not Found", b"there are /healthz, /readyz, /livez and /metrics\n"

    def _metrics(self) -> tuple[str, bytes]:
        if self._loop is None:
            raise RuntimeError("the pages have not been started")
        collected = asyncio.run_coroutine_threadsafe(self._measures.text(), self._loop)
        try:
            text = collected.result(METRICS_S)
        except concurrent.futures.TimeoutError:
            collected.cancel()
            # Exactly while the loop hangs, the metrics that say so must be there.
            text = generate_latest(self._loop_free_registry)
        except Exception as error:
            log.exception("metrics.failed")
            return "500 Internal Server Error", f"{error!r}\n".encode()
        return "200 OK", text


def _head(connection: socket.socket) -> str:
    """Read a request up to the empty line, or less if the client is too slow."""
    head, deadline = b"", time.monotonic() + REQUEST_S
    while b"\r\n\r\n" not in head and len(head) < MAX_REQUEST_BYTES:
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        if not (part := connection.recv(MAX_REQUEST_BYTES)):
            break
        head += part
    return head.decode("latin-1")


def _page_of(lines: Iterable[str]) -> tuple[str, bytes]:
    text = "".join(f"{line}\n" for line in lines)
    return ("503 Service Unavailable", text.encode()) if text else ("200 OK", b"ok\n")


def deduplicate(troubles: Iterable[Trouble]) -> list[Trouble]:
    """Deduplicate troubles reported by several processes, keeping the earliest. Oldest first."""
    earliest: dict[tuple[str, str, str], Trouble] = {}
    for trouble in sorted(troubles, key=lambda trouble: trouble.since):
        seen_by_all = not KINDS[trouble.condition].is_reported
        earliest.setdefault(
            (trouble.condition, trouble.about, "" if seen_by_all else trouble.program), trouble
        )
    return list(earliest.values())
