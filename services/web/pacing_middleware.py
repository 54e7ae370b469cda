"""Lets each request through in its client's turn, and releases its place whatever becomes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.kit.admission import Busy
from services.kit.bounded_dict import BoundedDict
from services.web import errors
from services.web.pacing import Pacing, RequestSlot
from services.web.turns import Turns

SLOT_KEY = "steadfast.place"
"""Scope key of the request's place, for an answer that never begins."""

TURN_BYTES, MAX_TURNS = 16 * 1024, 64
"""Size of an answer for which a client's next request takes one turn more: a millisecond of work if it lists
records. An answer with few but large values costs less, so there is a maximum."""
MAX_CLIENTS = 10_000
"""Number of clients whose long answers are remembered."""


class Client(NamedTuple):
    """Who sends a request."""

    user: str
    """Takes turns with other users; an address, if nobody is logged in."""
    name: str
    """Whose place and rate the request uses up: a user, an API token or a run."""


class Pace:
    """Runs an application in its client's turn, and holds a place until the answer begins.

    Streams have a limit of their own, and take turns for their parts. The application may be the whole API or
    a refusal, which costs nearly as much as an answer.
    """

    def __init__(self, pacing: Pacing, turns: Turns, client_of: Callable[[Scope], Client]) -> None:
        self._pacing, self._turns = pacing, turns
        self._client_of = client_of
        self._owed: BoundedDict[Client, int] = BoundedDict(MAX_CLIENTS)
        """Turns that the next request of a client takes in addition, for answers that were long."""

    async def run(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Run `app`, or refuse a client that has too many requests with 429."""
        client = self._client_of(scope)
        # Before the place, so that clients who are told to come again take turns, as well.
        for _ in range(1 + self._owed.pop(client, 0)):
            await self._turns.take(client.user, client.name)
        slot = scope[SLOT_KEY] = RequestSlot(self._pacing)

        async def release_at_start(message: Message) -> None:
            if message["type"] == "http.response.start":
                slot.release()
            elif not message.get("more_body"):
                self._owe(client, len(message.get("body", b"")) // TURN_BYTES)
            await send(message)

        try:
            await slot.acquire(client.name)
        except Busy as busy:
            await errors.response(scope["path"], busy.problem)(scope, receive, send)
            return
        try:
            await app(scope, receive, release_at_start)
        finally:
            slot.release()

    def _owe(self, client: Client, turns: int) -> None:
        # To be taken later: what an answer costs is known once it is made.
        if turns:
            self._owed[client] = self._owed.get(client, 0) + min(turns, MAX_TURNS)


class PacingMiddleware:
    """Paces every request that reaches it; those in front of it pace what they refuse."""

    def __init__(self, app: ASGIApp, pace: Pace) -> None:
        self._app = app
        self._pace = pace

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._pace.run(self._app, scope, receive, send)
        else:
            await self._app(scope, receive, send)
