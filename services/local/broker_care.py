"""Restarts a broker that refuses all messages although the cause is gone.

After a disk error, typically a full disk, a nats-server stream accepts nothing until the server is restarted,
however much space there is by then. Its /healthz page reports this.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from services.kit.disk_space import size_in_words, space_at
from services.local.processes import tell

LOOK_EVERY_S = 1.0
ANSWER_S = 2.0
ROOM_TO_WRITE = 32 << 20
"""Free bytes required before the broker is restarted: a few messages of the maximum size."""
FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 60.0
STEADY_AFTER_S = 60.0
"""Seconds of accepting messages after which a broker counts as healthy, so that the next fault is a new
one."""
LATCHED = ("write error", "not enabled", "disabled")
"""Parts of its answer that mean only a restart helps."""


class BrokerCare:
    """Watches one broker while its supervisor runs."""

    def __init__(self, restart: Callable[[], Awaitable[None]], monitor_port: int, store: Path) -> None:
        """`restart` ends the broker, which is then started again. `store` is where it stores the log."""
        self._restart = restart
        self._monitor_port = monitor_port
        self._store = store
        self._pause_s = FIRST_PAUSE_S
        self._told = ""
        self._well_since = time.monotonic()

    async def keep(self) -> None:
        """Check periodically until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            wrong = await asyncio.to_thread(write_error, self._monitor_port)
            if wrong:
                await self._heal(wrong)
            else:
                self._note_well()

    async def _heal(self, wrong: str) -> None:
        if missing := await asyncio.to_thread(self._missing):
            if self._told != wrong:
                tell(f"the broker accepts no messages: {wrong}; {missing}")
            self._told = wrong
            return
        tell(f"the broker accepts no messages: {wrong}; there is space now, so it is restarted")
        self._told = ""
        await self._restart()
        self._well_since = time.monotonic()
        await asyncio.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    def _missing(self) -> str:
        """Return what prevents a useful restart; empty if nothing does."""
        try:
            space = space_at(self._store)
        except OSError as error:
            return f"its disk cannot be checked: {error}"
        if space.free >= ROOM_TO_WRITE:
            return ""
        wanted = size_in_words(ROOM_TO_WRITE)
        return f"{size_in_words(space.free)} are free at {self._store}: it restarts once there are {wanted}"

    def _note_well(self) -> None:
        self._told = ""
        if time.monotonic() - self._well_since > STEADY_AFTER_S:
            self._pause_s = FIRST_PAUSE_S


def write_error(monitor_port: int) -> str:
    """Return why the broker refuses all messages until it is restarted; empty if it does not, or is away."""
    connection = http.client.HTTPConnection("127.0.0.1", monitor_port, timeout=ANSWER_S)
    try:
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        body = answer.read()
        wrong = json.loads(body) if answer.status != http.client.OK else {}
    except (OSError, http.client.HTTPException, ValueError):
        return ""
    finally:
        connection.close()
    error = str(wrong.get("error", "")) if isinstance(wrong, dict) else ""
    return error if any(word in error for word in LATCHED) else ""
