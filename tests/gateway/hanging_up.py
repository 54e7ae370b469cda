"""A client that hangs up at one await after the other of what is done for it."""

from __future__ import annotations

import asyncio
import contextvars
import types
from collections.abc import Callable, Generator
from typing import Any

WHOSE: contextvars.ContextVar[Client | None] = contextvars.ContextVar("client", default=None)
TURNS = 60
"""Turns of the loop without a further await after which a request counts as waiting for something."""


@types.coroutine
def counted(work: Any, note: Callable[[asyncio.Future[Any] | None], None]) -> Generator[Any, Any, Any]:
    """The same work; `note` is called with what it waits for, each time that it does."""
    steps, send, value = work.__await__(), True, None
    while True:
        try:
            waited = steps.send(value) if send else steps.throw(value)
        except StopIteration as end:
            return end.value
        note(waited)
        try:
            send, value = True, (yield waited)
        except BaseException as error:
            send, value = False, error


def counting(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
    """A task factory: the awaits of tasks that are begun for a client count as its own."""
    client = WHOSE.get()
    return asyncio.Task(coro if client is None else counted(coro, client.on_await), loop=loop, **options)


class Client:
    """One request, whose connection ends, or whose task is cancelled, at the `at`-th await.

    `how` is `closes` (the server hears of it as of a client), `cancels` (as when a gateway is stopped), or
    `late`: cancelled as soon as what it waited for has come, and before it could go on.
    """

    def __init__(self, app: Any, method: str, path: str, token: str, at: int, how: str) -> None:
        where, _, query = path.partition("?")
        self._scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
            "scheme": "http", "path": where, "raw_path": where.encode(), "query_string": query.encode(),
            "root_path": "",
            "headers": [(b"host", b"localhost"), (b"authorization", token.encode())],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }  # fmt: skip
        self._app, self._at, self._how = app, at, how
        self.awaits = 0
        self.reached = False
        self._gone = asyncio.Event()
        self._has_requested = False
        self._task: asyncio.Task[Any] | None = None

    async def run(self, meanwhile: Callable[[], Any]) -> bool:
        """Ask, and hang up; whether it came to that await, so that the next may be tried."""
        whose = WHOSE.set(self)
        self._task = asyncio.ensure_future(self._app(self._scope, self._receive, self._send))
        WHOSE.reset(whose)
        await self._quiet()
        if not self._task.done() and not self.reached:
            # It waits: something happens, and it may come to further awaits.
            await meanwhile()
            await self._quiet()
        self._hang_up()
        await asyncio.wait([self._task], timeout=60)
        assert self._task.done(), f"{self._scope['path']} goes on after its client has gone"
        if self._how == "closes":
            # Nobody has cancelled it: its answer is made, for whoever is there.
            self._task.result()
        elif not self._task.cancelled() and self._task.exception() is not None:
            raise self._task.exception()
        return self.reached

    async def _quiet(self) -> None:
        before, turns = -1, 0
        while not self._task.done() and not self.reached and turns < TURNS:
            turns = turns + 1 if self.awaits == before else 0
            before = self.awaits
            await asyncio.sleep(0.0005)

    def on_await(self, waited: asyncio.Future[Any] | None) -> None:
        """Something is awaited for it."""
        self.awaits += 1
        if self.awaits != self._at:
            return
        self.reached = True
        if self._how == "late" and waited is not None:
            waited.add_done_callback(lambda _: self._task.cancel())
        else:
            asyncio.get_running_loop().call_soon(self._hang_up)

    def _hang_up(self) -> None:
        self._gone.set()
        if self._how != "closes":
            self._task.cancel()

    async def _receive(self) -> dict[str, Any]:
        if not self._has_requested:
            self._has_requested = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        # Every part of an answer may have to wait for a slow client.
        await asyncio.sleep(0)
