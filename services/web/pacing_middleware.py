"""Releases the place of a request, whatever becomes of it."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.web.pacing import Pacing, RequestSlot

SLOT_KEY = "steadfast.place"
"""Scope key; the authentication takes the place once it knows the client."""


class PacingMiddleware:
    """Holds a place until the answer begins, because streams have their own limit."""

    def __init__(self, app: ASGIApp, pacing: Pacing) -> None:
        self._app = app
        self._pacing = pacing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        slot = scope[SLOT_KEY] = RequestSlot(self._pacing)

        async def release_at_start(message: Message) -> None:
            if message["type"] == "http.response.start":
                slot.release()
            await send(message)

        try:
            await self._app(scope, receive, release_at_start)
        finally:
            slot.release()
