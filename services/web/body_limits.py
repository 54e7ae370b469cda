"""Processing of every request before a route sees it: limits on size and values, trailing slashes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Protocol

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from det_contracts.problems import Problem, invalid
from services.web import errors
from services.web.bodies import LIMIT_BYTES
from services.web.pacing_middleware import Pace
from services.web.tunnels import EXTENSION
from services.web.unread import UnreadData

PLAIN_LIMIT_BYTES = 4 << 20
"""Limit for any other request. Its contents become a log message and are parsed on the event loop."""
ANONYMOUS_LIMIT_BYTES = 1 << 20
"""Limit for clients that are not logged in."""
DISCARD_BYTES = 256 << 20
"""How much of an oversized request is read, so that its sender gets the answer."""
CREATE_LIMIT_BYTES = LIMIT_BYTES * 4 // 3 + (16 << 20)
"""The limit applies to the contents of a context; as base64 in JSON they are a third larger."""
CREATE_PATH = f"{errors.API}/experiments"
EXTERNAL_PATH = f"{CREATE_PATH}/by-external-id/"
REPORT_LIMIT_BYTES = 12 << 20
"""A larger JSON report exceeds the broker's limit in any encoding, so it is refused before parsing."""
PLAIN_VALUES, REPORT_VALUES = 25_000, 300_000
"""Parsing time on the event loop grows with the number of values, however short they are. The values of a
report are parsed only as numbers."""
# Matches at every quote and never backtracks, so the time is linear whatever a part holds.
JSON_STRINGS = re.compile(rb'"[^"]*"?')
LARGE_PATHS = re.compile(f"{errors.API}/(commands|notebooks|shells|tensorboards)|/proxy/.*")
REPORT_PATHS = re.compile(f"{errors.API}/trials/[0-9]+/(training_|validation_)?metrics")


AMBIGUOUS = {b"content-length", b"transfer-encoding"}

MAX_BODY_S = 1800.0
"""Maximum time in seconds for a whole body, however steadily it arrives: a large one occupies one of few
places."""

SMALL_BYTES = 64 << 10
"""Bodies up to this size are not counted: a connection costs as much."""
TOO_MANY_BODIES = "too many requests from this address are incomplete, and others came more steadily"


Authenticate = Callable[[Scope], Awaitable[Problem | None]]
"""Returns why the sender of a request is unknown, or None if the sender is known."""


class BodyLimitsMiddleware:
    """Ignores trailing slashes and content types, and refuses oversized requests with 413."""

    def __init__(self, app: ASGIApp, authenticate: Authenticate, pace: Pace) -> None:
        self._app, self._pace = app, pace
        self._authenticate = authenticate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if len(scope["path"]) > 1:
            scope = {**scope, "path": scope["path"].rstrip("/") or "/"}
        # Every body is JSON, whatever the client says: `curl -d` declares a form.
        headers = [(name, value) for name, value in scope["headers"] if name != b"content-type"]
        scope = {**scope, "headers": headers}
        limit = _limit(scope["path"])
        # Proxies and servers disagree about which of the two counts, which lets a client hide a second
        # request in a body.
        if dict(headers).keys() >= AMBIGUOUS:
            await self._pace.run(_refuse_ambiguous, scope, receive, send)
            return
        announced = dict(headers).get(b"content-length", b"0")
        size = int(announced) if announced.isdigit() else 0
        problem, status = Problem("exhausted", _too_large(limit)), 413
        if size <= limit:
            # Only large requests are authenticated here, before they are read; all others are by their
            # routes.
            if size <= ANONYMOUS_LIMIT_BYTES or (denial := await self._authenticate(scope)) is None:
                body = _LimitedBody(receive, limit, scope, self._authenticate)
                try:
                    await self._app(scope, body, send)
                finally:
                    body.forget()
                return
            problem, status = denial, 401
        # Read the rest: a client that is still sending would see a broken pipe instead of the answer.
        await _discard(receive)
        answer = errors.response(scope["path"], problem, status)
        await self._pace.run(answer, scope, receive, send)


async def _refuse_ambiguous(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a request that ends in two places, and close: a proxy may take what follows for a part of it."""
    problem = invalid("a request has either Content-Length or Transfer-Encoding, not both").problem
    answer = errors.response(scope["path"], problem)
    answer.headers["Connection"] = "close"
    await answer(scope, receive, send)


class ValueCounter:
    """Estimates the number of values in streamed JSON: at least the actual number, at most twice that."""

    def __init__(self) -> None:
        self.count = 0
        self._open = b""
        """What remains of an unfinished string: its quote, and perhaps half an escape."""

    def feed(self, part: bytes) -> None:
        """Count the values in the next part."""
        # In JSON a backslash occurs only in strings, and the first of several starts an escape sequence.
        unescaped = (self._open + part).replace(rb"\\", b"").replace(rb"\"", b"")
        outside = JSON_STRINGS.sub(b"", unescaped)
        self.count += outside.count(b",") + outside.count(b"{") + outside.count(b"[")
        self._open = b'"' * (unescaped.count(b'"') % 2) + b"\\" * unescaped.endswith(b"\\")


class _Connection(Protocol):
    """What a body needs of the connection by which it arrives."""

    address: str
    bodies: UnreadData

    def cut_off(self, why: str) -> None: ...


class _LimitedBody:
    """A body whose size was not announced, or announced wrongly. It is counted while it is in memory."""

    def __init__(self, receive: Receive, limit: int, scope: Scope, authenticate: Authenticate) -> None:
        self._receive = receive
        self._authenticate = authenticate
        self._scope = scope
        # None without a connection of ours, as in tests.
        self._connection: _Connection | None = (scope.get("extensions") or {}).get(EXTENSION)
        self._is_authenticated = False
        self._limit = limit
        self._received_bytes = 0
        self._values, self._most = ValueCounter(), _max_values(scope["path"])
        self._is_complete = False
        self._deadline = 0.0

    async def __call__(self) -> Message:
        message = await self._next()
        self._received_bytes += len(message.get("body", b""))
        if self._received_bytes > self._limit:
            raise HTTPException(413, _too_large(self._limit))
        self._count()
        if self._most:
            self._values.feed(message.get("body", b""))
            if self._values.count > self._most:
                raise HTTPException(413, _too_many(self._most))
        # A body in chunks does not announce its size.
        if self._received_bytes > ANONYMOUS_LIMIT_BYTES and not self._is_authenticated:
            if (denial := await self._authenticate(self._scope)) is not None:
                raise HTTPException(401, denial.message)
            self._is_authenticated = True
        return message

    @property
    def address(self) -> str:
        """The client's address; the bodies of one address are weighed together."""
        return self._connection.address if self._connection is not None else ""

    def unread_bytes(self) -> int:
        """Number of bytes in memory."""
        return self._received_bytes

    def disconnect(self) -> None:
        """End the request, whose client sends less steadily than others, for want of memory."""
        if self._connection is not None:
            self._connection.cut_off(TOO_MANY_BODIES)

    def forget(self) -> None:
        """Stop counting the body: its request is over."""
        if self._connection is not None:
            self._connection.bodies.forget(self)

    def _count(self) -> None:
        # Those without a limit on values go to a file or to a task, part by part.
        if self._connection is None or not self._most or self._received_bytes <= SMALL_BYTES:
            return
        # Counted anew with each part, and so behind those of which nothing has come for longer.
        self._connection.bodies.forget(self)
        self._connection.bodies.waits(self)

    async def _next(self) -> Message:
        if self._is_complete:
            # Only the client's disconnect can still arrive.
            return await self._receive()
        loop = asyncio.get_running_loop()
        self._deadline = self._deadline or loop.time() + MAX_BODY_S
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(408, f"the request did not arrive completely in {MAX_BODY_S:.0f} s") from None
        self._is_complete = not message.get("more_body")
        return message


def _limit(path: str) -> int:
    if path == CREATE_PATH or path.startswith(EXTERNAL_PATH):
        return CREATE_LIMIT_BYTES
    if REPORT_PATHS.fullmatch(path):
        return REPORT_LIMIT_BYTES
    plain = LARGE_PATHS.fullmatch(path) is None
    return min(LIMIT_BYTES, PLAIN_LIMIT_BYTES) if plain else LIMIT_BYTES


def _max_values(path: str) -> int:
    """Return the limit; 0 if the body is parsed in another process or not at all."""
    limit = _limit(path)
    return {PLAIN_LIMIT_BYTES: PLAIN_VALUES, REPORT_LIMIT_BYTES: REPORT_VALUES}.get(limit, 0)


def _too_many(limit: int) -> str:
    return f"the request holds too much: at most {limit:,} values are taken; send fewer at once"


def _too_large(limit: int) -> str:
    return f"the request is too large: at most {limit:,} bytes are taken; send less at once"


async def _discard(receive: Receive) -> None:
    discarded = 0
    while discarded < DISCARD_BYTES:
        message = await receive()
        discarded += len(message.get("body", b""))
        if message["type"] == "http.disconnect" or not message.get("more_body"):
            return
