"""What happens to every request before a route sees it: size limit, trailing slashes."""

from __future__ import annotations

import re

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from det_contracts.problems import Problem
from services.gateway.web import errors

LIMIT_BYTES = 96 << 20
"""Largest request."""
CREATE_LIMIT_BYTES = LIMIT_BYTES * 4 // 3 + (16 << 20)
"""For a context the limit holds for what is inside: in JSON, base64 makes it a third larger."""
CREATE_PATH = f"{errors.API}/experiments"
REPORT_LIMIT_BYTES = 12 << 20
"""A report that is larger as JSON is too large for the broker in any form: told before it is parsed."""
REPORT_PATHS = re.compile(f"{errors.API}/trials/[0-9]+/(training_|validation_)?metrics")


class Framing:
    """Ignores trailing slashes and content types, and refuses what is too large, with 413."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

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
        if announced.isdigit() and int(announced) > limit:
            # Read to the end: a client that is still sending would see a broken pipe and not the answer.
            await _discard(receive)
            problem = Problem("exhausted", _too_large(limit))
            await errors.response(scope["path"], problem, 413)(scope, receive, send)
            return
        await self._app(scope, _Counted(receive, limit), send)


class _Counted:
    """A body whose size was not announced, or not truly."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._seen = 0

    async def __call__(self) -> Message:
        message = await self._receive()
        self._seen += len(message.get("body", b""))
        if self._seen > self._limit:
            raise HTTPException(413, _too_large(self._limit))
        return message


def _limit(path: str) -> int:
    if path == CREATE_PATH:
        return CREATE_LIMIT_BYTES
    return REPORT_LIMIT_BYTES if REPORT_PATHS.fullmatch(path) else LIMIT_BYTES


def _too_large(limit: int) -> str:
    return f"the request is larger than {limit} bytes"


async def _discard(receive: Receive) -> None:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect" or not message.get("more_body"):
            return
