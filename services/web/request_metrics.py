"""Counts requests by route and measures their latency."""

from __future__ import annotations

import time
from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.kit.process_metrics import Measures, Reading

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""Methods with time series of their own, which are kept until the process ends."""


class MetricsMiddleware:
    """Records route, status and time to the beginning of the answer for each request."""

    def __init__(self, app: ASGIApp, measures: Measures) -> None:
        self._app = app
        self._owner = measures.owner
        self._requests = measures.counter("requests", "Requests answered", "method", "route", "status")
        self._waits = measures.histogram(
            "request_seconds", "Time until an answer began, streams included", "method", "route"
        )
        self._open = 0
        measures.register(self._readings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()

        async def record_status(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._record(scope, message["status"], time.perf_counter() - began)
            await send(message)

        self._open += 1
        try:
            await self._app(scope, receive, record_status)
        finally:
            self._open -= 1

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        route = route_of(scope)
        # Nor the method itself, which may be any word of a client.
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._requests.labels(self._owner, method, route, str(status)).inc()
        self._waits.labels(self._owner, method, route).observe(seconds)

    def _readings(self) -> Iterable[Reading]:
        yield Reading("requests_open", "Requests and streams that are open", (), {(): self._open})


def route_of(scope: Scope) -> str:
    """Return the declared path that the router left in the scope, or one common name for unknown paths."""
    # Never the path itself: a client could create a time series for each address that it makes up.
    declared: str = getattr(scope.get("route"), "path", "none")
    return declared
