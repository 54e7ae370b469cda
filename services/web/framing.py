"""What happens to every request before a route sees it: limits of size and of values, trailing slashes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from det_contracts.problems import Problem
from services.web import errors
from services.web.bodies import LIMIT_BYTES

PLAIN_LIMIT_BYTES = 4 << 20
"""Of any other: what is in it becomes a message of the log, and is read by the loop itself."""
STRANGERS_LIMIT_BYTES = 1 << 20
"""Of whoever is not logged in."""
DISCARD_BYTES = 256 << 20
"""What is read of a request that is too large, so that its sender hears so."""
CREATE_LIMIT_BYTES = LIMIT_BYTES * 4 // 3 + (16 << 20)
"""For a context the limit holds for what is inside: in JSON, base64 makes it a third larger."""
CREATE_PATH = f"{errors.API}/experiments"
EXTERNAL_PATH = f"{CREATE_PATH}/by-external-id/"
REPORT_LIMIT_BYTES = 12 << 20
"""A report that is larger as JSON is too large for the broker in any form: told before it is parsed."""
PLAIN_VALUES, REPORT_VALUES = 25_000, 300_000
"""What is read by the loop itself takes it the longer the more values it holds, however short each is. Those
of a report are looked at only as numbers."""
TEXTS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
LARGE_PATHS = re.compile(f"{errors.API}/(commands|notebooks|shells|tensorboards)|/proxy/.*")
REPORT_PATHS = re.compile(f"{errors.API}/trials/[0-9]+/(training_|validation_)?metrics")


LONGEST_BODY_S = 1800.0
"""For all of a body, however steadily it comes: a large one has one of few places meanwhile."""


Stranger = Callable[[Scope], Awaitable[Problem | None]]
"""Says why nobody is known to send a request, if so."""


class Framing:
    """Ignores trailing slashes and content types, and refuses what is too large, with 413."""

    def __init__(self, app: ASGIApp, stranger: Stranger) -> None:
        self._app = app
        self._stranger = stranger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if len(scope["path"]) > 1:
            scope = {**scope, "path": scope["path"].rstrip("/") or "/"}
        # Every body is JSON, whatever a client calls it: `curl -d` calls it a form.
        headers = [(name, value) for name, value in scope["headers"] if name != b"content-type"]
        scope = {**scope, "headers": headers}
        limit = _limit(scope["path"])
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        size = int(announced) if announced.isdigit() else 0
        problem, status = Problem("exhausted", _too_large(limit)), 413
        if size <= limit:
            if size <= STRANGERS_LIMIT_BYTES or (stranger := await self._stranger(scope)) is None:
                await self._app(scope, _Counted(receive, limit, scope, self._stranger), send)
                return
            problem, status = stranger, 401
        # Read to the end: a client that is still sending would see a broken pipe and not the answer.
        await _discard(receive)
        await errors.response(scope["path"], problem, status)(scope, receive, send)


class Values:
    """How many values there are in JSON that comes in parts: at least as many as it says, at most twice."""

    def __init__(self) -> None:
        self.count = 0
        self._open = b""
        """How a text begins that is not over yet: with its quote, and perhaps half an escape."""

    def take(self, part: bytes) -> None:
        """The next part."""
        outside, quote, inside = TEXTS.sub(b"", self._open + part).partition(b'"')
        self.count += outside.count(b",") + outside.count(b"{") + outside.count(b"[")
        self._open = quote + b"\\" * ((len(inside) - len(inside.rstrip(b"\\"))) % 2)


class _Counted:
    """A body whose size was not announced, or not truly."""

    def __init__(self, receive: Receive, limit: int, scope: Scope, stranger: Stranger) -> None:
        self._receive = receive
        self._stranger = stranger
        self._scope = scope
        self._known = False
        self._limit = limit
        self._seen = 0
        self._values, self._most = Values(), _most_values(scope["path"])
        self._whole = False
        self._until = 0.0

    async def __call__(self) -> Message:
        message = await self._next()
        self._seen += len(message.get("body", b""))
        if self._seen > self._limit:
            raise HTTPException(413, _too_large(self._limit))
        if self._most:
            self._values.take(message.get("body", b""))
            if self._values.count > self._most:
                raise HTTPException(413, _too_many(self._most))
        if self._seen > STRANGERS_LIMIT_BYTES and not self._known:
            if (stranger := await self._stranger(self._scope)) is not None:
                raise HTTPException(401, stranger.message)
            self._known = True
        return message

    async def _next(self) -> Message:
        if self._whole:
            # What may come yet is that the client has gone.
            return await self._receive()
        loop = asyncio.get_running_loop()
        self._until = self._until or loop.time() + LONGEST_BODY_S
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(
                408, f"the request did not arrive completely in {LONGEST_BODY_S:.0f} s"
            ) from None
        self._whole = not message.get("more_body")
        return message


def _limit(path: str) -> int:
    if path == CREATE_PATH or path.startswith(EXTERNAL_PATH):
        return CREATE_LIMIT_BYTES
    if REPORT_PATHS.fullmatch(path):
        return REPORT_LIMIT_BYTES
    plain = LARGE_PATHS.fullmatch(path) is None
    return min(LIMIT_BYTES, PLAIN_LIMIT_BYTES) if plain else LIMIT_BYTES


def _most_values(path: str) -> int:
    """0 where another process reads, or nobody."""
    limit = _limit(path)
    return {PLAIN_LIMIT_BYTES: PLAIN_VALUES, REPORT_LIMIT_BYTES: REPORT_VALUES}.get(limit, 0)


def _too_many(limit: int) -> str:
    return f"the request holds too much: at most {limit:,} values are taken; send fewer at once"


def _too_large(limit: int) -> str:
    return f"the request is too large: at most {limit:,} bytes are taken; send less at once"


async def _discard(receive: Receive) -> None:
    seen = 0
    while seen < DISCARD_BYTES:
        message = await receive()
        seen += len(message.get("body", b""))
        if message["type"] == "http.disconnect" or not message.get("more_body"):
            return
