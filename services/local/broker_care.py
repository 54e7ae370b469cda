"""Starts the broker again where it refuses every message for a reason that is over.

A stream of nats-server that has met an error of its disk, a full one above all, takes nothing more until the
server is started again, however much room there is by then. Its page /healthz says so.
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
"""Bytes that must be free before the broker is started again: some messages of the largest size."""
FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 60.0
STEADY_AFTER_S = 60.0
"""A broker that has taken messages for so long is well again: the next fault is another one."""
LATCHED = ("write error", "not enabled", "disabled")
"""What stands in its answer when only a new start helps."""


class BrokerCare:
    """Looks after one broker for as long as its supervisor runs."""

    def __init__(self, restart: Callable[[], Awaitable[None]], monitor_port: int, store: Path) -> None:
        """`restart` ends the broker, which is then started again; `store` is where it keeps the log."""
        self._restart = restart
        self._monitor_port = monitor_port
        self._store = store
        self._pause_s = FIRST_PAUSE_S
        self._told = ""
        self._well_since = time.monotonic()

    async def keep(self) -> None:
        """Look again and again, until cancelled."""
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
                tell(f"the broker takes no messages: {wrong}; {missing}")
            self._told = wrong
            return
        tell(f"the broker takes no messages: {wrong}; there is room now, so it is started again")
        self._told = ""
        await self._restart()
        self._well_since = time.monotonic()
        await asyncio.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    def _missing(self) -> str:
        """What has to come before a new start helps; empty for nothing."""
        try:
            space = space_at(self._store)
        except OSError as error:
            return f"its disk cannot be looked at: {error}"
        if space.free >= ROOM_TO_WRITE:
            return ""
        wanted = size_in_words(ROOM_TO_WRITE)
        return f"{size_in_words(space.free)} are free at {self._store}: it goes on once there are {wanted}"

    def _note_well(self) -> None:
        self._told = ""
        if time.monotonic() - self._well_since > STEADY_AFTER_S:
            self._pause_s = FIRST_PAUSE_S


def write_error(monitor_port: int) -> str:
    """Why the broker refuses all messages until it is started again; empty when it does not, or is away."""
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
