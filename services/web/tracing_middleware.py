"""Traces requests that ask for a change, or that carry a trace of their sender."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.kit.spans import Tracer
from services.kit.trace_context import CURRENT, HEADER
from services.web.request_metrics import route_of

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class TracingMiddleware:
    """Opens a span per request; commands sent on its behalf belong to that span."""

    def __init__(self, app: ASGIApp, tracer: Tracer) -> None:
        self._app = app
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        parent_header = dict(scope.get("headers", ())).get(HEADER.encode(), b"").decode("latin-1")
        if scope["type"] != "http" or (scope["method"] in SAFE_METHODS and not parent_header):
            await self._app(scope, receive, send)
            return
        span = self._tracer.start_span(scope["method"], parent_header, kind="server")
        status = 0

        async def record_status(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        context_token = CURRENT.set(span.header)
        try:
            await self._app(scope, receive, record_status)
        finally:
            CURRENT.reset(context_token)
            # Only now does the scope have the route that the router has found.
            span.name(f"{scope['method']} {route_of(scope)}")
            span.end("failed" if status >= 500 else "", **{"http.response.status_code": status})
