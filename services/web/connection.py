"""Connection limits and timeouts. uvicorn limits only the time between requests.

A client that sends its header or body too slowly, or does not read its answer, is cut off; a slow client that
makes progress is not. The number of connections is limited in total and per address, and further ones get an
error. The data waiting for clients is limited as well, and so are the bodies that are still arriving: see
`unread`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import h11
import msgspec
from starlette.types import Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from det_contracts.problems import Problem, unavailable
from services.kit.process_metrics import Reading
from services.web import errors
from services.web.tunnels import EXTENSION, Streams
from services.web.unread import BODY_BYTES, UNREAD_BYTES, UnreadData
from services.web.upgrades import CHUNK, Headers, as_bytes

POLL_EVERY_S = 5.0
HEADER_S = 20.0
"""Maximum time in seconds for the header of a request."""
WINDOW_S = 60.0
MIN_WINDOW_BYTES = 60 << 10
"""Minimum progress of a body or an answer per window, in bytes; the last part may be smaller."""
RETRY_S = 10


class Connections:
    """Counts the open connections."""

    def __init__(self, most: int, each: int, unread: int = UNREAD_BYTES, bodies: int = BODY_BYTES) -> None:
        """Set the limits in total and per address.

        `unread` is the limit in bytes of data waiting for all clients, `bodies` that of the request bodies in
        memory.
        """
        self._most, self._each = most, each
        self.unread = UnreadData(unread)
        self.bodies = UnreadData(bodies)
        self.total = 0
        self._from: Counter[str] = Counter()
        self.cut = 0
        """Number of clients that were cut off."""

    def add(self, address: str) -> Problem | None:
        """Count a connection. Returns a problem if it must be refused; it still counts until it ends."""
        self.total += 1
        self._from[address] += 1
        # The address first, so that one host that takes all places is told about itself and not about the
        # cluster.
        if self._from[address] > self._each:
            return Problem(
                "exhausted", f"there are {self._each} connections from {address}; close some", RETRY_S
            )
        if self.total > self._most:
            return Problem("unavailable", f"there are {self._most} connections already, the maximum", RETRY_S)
        return None

    def readings(self) -> Iterable[Reading]:
        """Prometheus readings."""
        yield Reading("connections", "Connections to clients", (), {(): self.total})
        yield Reading("connections_cut", "Clients that were cut off as too slow", (), {(): self.cut})
        unread = "Bytes of responses that clients have not read yet"
        yield Reading("connections_unread_bytes", unread, (), {(): self.unread.total})
        bodies = "Bytes of large request bodies in memory"
        yield Reading("connections_body_bytes", bodies, (), {(): self.bodies.total})

    def remove(self, address: str) -> None:
        """Count a connection as ended."""
        self.total -= 1
        self._from[address] -= 1
        if not self._from[address]:
            del self._from[address]


class HttpConnection(H11Protocol):
    """One connection."""

    def __init__(
        self,
        connections: Connections,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._connections = connections
        self.bodies = connections.bodies
        self.address = ""
        self._check_timer: asyncio.TimerHandle | None = None
        self._header_since: float | None = None
        """When the header being awaited or read began."""
        self._window = (0.0, 0, 0)
        """Start of the window, bytes received by then, and bytes then waiting to be sent."""
        self._received = 0
        self.app = _WithConnection(self.app, self)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start counting and watching a new connection."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        # A refused connection is answered, not closed: a client that is only cut off tries again at once.
        refusal = self._connections.add(self.address)
        if refusal is not None:
            self.app = _RefusingApp(refusal)
        self._header_since = self.loop.time()
        self._start_window()
        self._check_timer = self.loop.call_later(POLL_EVERY_S, self._check)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting and watching a closed connection."""
        if self._check_timer is not None:
            self._check_timer.cancel()
            self._check_timer = None
            self._connections.remove(self.address)
            self._connections.unread.forget(self)
        super().connection_lost(exc)

    def take_over(self, headers: Headers) -> Streams:
        """Agree to leave HTTP with these headers. All further bytes belong to the caller.

        The connection still counts until it ends, but is no longer watched.
        """
        # uvicorn's own handlers of this connection must not be called any more, so the timer that does goes
        # first.
        if self._check_timer is not None:
            self._check_timer.cancel()
        raw_headers = as_bytes([("connection", "Upgrade"), *headers])
        response = h11.InformationalResponse(status_code=101, headers=raw_headers)
        self.transport.write(self.conn.send(response) or b"")
        # To the server, the request is finished and needs no answer.
        self.cycle.disconnected = True
        reader = asyncio.StreamReader(limit=CHUNK)
        protocol = _TunnelProtocol(reader, self.connection_lost)
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        # The client may send data right behind its request, which h11 has already read.
        if first := self.conn.trailing_data[0]:
            reader.feed_data(first)
        # uvicorn pauses reading while a request is being handled, which nobody would end.
        self.flow.resume_reading()
        return reader, asyncio.StreamWriter(self.transport, protocol, reader, self.loop)

    def break_off(self) -> None:
        """Close the connection in the middle of an answer, so that the client notices it is incomplete."""
        self._abandon_request()
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Suppress the warning: tasks decide which upgrades they support."""

    def shutdown(self) -> None:
        """Stop accepting requests."""
        super().shutdown()
        secured = self.transport.get_extra_info("ssl_object") is not None
        if secured and self.transport.is_closing() and not self.transport.get_write_buffer_size():
            # A TLS close waits for the client's agreement, which an idle client may never send.
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Handle received bytes."""
        self._received += len(data)
        # A new cycle begins once a header is complete, and it may be complete in these bytes.
        before = self.cycle
        if self._header_since is None and self._is_idle():
            # A connection on which nothing has been sent counts as slow, too; otherwise idle ones could take
            # all places.
            self._header_since = self.loop.time()
        super().data_received(data)
        if self.cycle is not before:
            self._header_since = None
            self._start_window()

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not HTTP, which may arrive while a request is being answered."""
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:
            # An answer has already begun.
            self.transport.close()
        self._abandon_request()

    def pause_writing(self) -> None:
        """Handle a client that reads more slowly than it is sent to.

        Its unread data only shrinks from here on.
        """
        super().pause_writing()
        self._start_window()
        self._connections.unread.waits(self)

    def resume_writing(self) -> None:
        """Handle a client that has read most of its data."""
        super().resume_writing()
        self._connections.unread.forget(self)

    def unread_bytes(self) -> int:
        """Number of bytes waiting for the client."""
        return self.transport.get_write_buffer_size()

    def disconnect(self) -> None:
        """Close the connection at once, whatever is left to send."""
        self._connections.cut += 1
        self.transport.abort()

    def cut_off(self, why: str) -> None:
        """Tell the client unless its answer has begun, and close the connection."""
        self._connections.cut += 1
        problem = Problem("unavailable", f"{why}; the connection is closed")
        if self.cycle is None or self._is_idle() or not self.cycle.response_started:
            self._send_error(problem)
        self._abandon_request()
        self.transport.close()

    def _is_idle(self) -> bool:
        return self.cycle is None or (self.cycle.response_complete and not self._is_body_arriving())

    def _is_body_arriving(self) -> bool:
        """Whether the body of the last request is still arriving, answered or not."""
        return self.conn.their_state is h11.SEND_BODY

    def _start_window(self) -> None:
        self._window = (self.loop.time(), self._received, self.transport.get_write_buffer_size())

    def _check(self) -> None:
        self._check_timer = self.loop.call_later(POLL_EVERY_S, self._check)
        if self.transport.is_closing():
            # The remaining data is for a client that may not be reading it.
            self._check_answer()
        elif self._is_idle():
            if self._header_since is not None and self.loop.time() - self._header_since > HEADER_S:
                self.cut_off("the header of the request did not arrive in time")
        elif self.flow.write_paused:
            self._check_answer()
        # While the gateway itself does not read, the client is not to blame.
        elif self._is_body_arriving() and not self.flow.read_paused:
            self._check_body()
        else:
            self._start_window()

    def _check_body(self) -> None:
        began, received, _ = self._window
        if self.loop.time() - began < WINDOW_S:
            return
        if self._received - received < MIN_WINDOW_BYTES:
            self.cut_off(f"less than {MIN_WINDOW_BYTES} bytes of the request came in {WINDOW_S:.0f} s")
        else:
            self._start_window()

    def _check_answer(self) -> None:
        began, _, left = self._window
        now = self.transport.get_write_buffer_size()
        # The buffer is all that can be seen; a client that reads makes it smaller, since nothing is added
        # while writing is paused.
        if now < left or now == 0:
            self._start_window()
        elif self.loop.time() - began >= WINDOW_S:
            self.disconnect()

    def _abandon_request(self) -> None:
        """Tell the handler of the last request that it need not continue."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    def _send_error(self, problem: Problem) -> None:
        body = msgspec.json.encode(errors.body(errors.API + "/", problem))
        headers = [("content-type", "application/json"), ("connection", "close")]
        headers.append(("content-length", str(len(body))))
        try:
            for event in (
                h11.Response(status_code=408, headers=headers, reason="Request Timeout"),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:
            # The request is malformed as well.
            return


class _TunnelProtocol(asyncio.StreamReaderProtocol):
    """A connection that was taken over."""

    def __init__(self, reader: asyncio.StreamReader, on_lost: Callable[[Exception | None], None]) -> None:
        super().__init__(reader)
        self._on_lost = on_lost

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the closed connection."""
        super().connection_lost(exc)
        self._on_lost(exc)


STOPPING = unavailable("the gateway is being stopped; try again")


class _WithConnection:
    """Gives every request of a connection the means to take it over."""

    def __init__(self, app: Any, connection: HttpConnection) -> None:
        self._app, self._connection = app, connection

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["extensions"] = {**(scope.get("extensions") or {}), EXTENSION: self._connection}
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            # Uvicorn cancels what has not ended soon after the server is stopped. It would log that as a
            # defect, and answer 500, after which nobody tries again.
            if self._connection.cycle.response_started:
                self._connection.break_off()
            else:
                await errors.response(scope["path"], STOPPING.problem)(scope, receive, send)


class _RefusingApp:
    """Answers every request of a connection over the limit."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = errors.response(scope["path"], self._problem)
        answer.headers["Connection"] = "close"
        await answer(scope, receive, send)
