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

from services.kit.disk_space import format_size, space_at
from services.local.processes import log_line

POLL_EVERY_S = 1.0
ANSWER_TIMEOUT_S = 2.0
MIN_FREE_BYTES = 32 << 20
"""Free bytes required before the broker is restarted: a few messages of the maximum size."""
FIRST_PAUSE_S = 2.0
MAX_PAUSE_S = 60.0
HEALTHY_AFTER_S = 60.0
"""Seconds of accepting messages after which a broker counts as healthy, so that the next fault is a new
one."""
NEEDS_RESTART = ("write error", "not enabled", "disabled")
"""Parts of its answer that mean only a restart helps."""


class BrokerRecovery:
    """Watches one broker while its supervisor runs."""

    def __init__(self, restart: Callable[[], Awaitable[None]], monitor_port: int, store: Path) -> None:
        """`restart` ends the broker, which is then started again. `store` is where it stores the log."""
        self._restart = restart
        self._monitor_port = monitor_port
        self._store = store
        self._pause_s = FIRST_PAUSE_S
        self._last_logged = ""
        self._healthy_since = time.monotonic()

    async def run(self) -> None:
        """Check periodically until cancelled."""
        while True:
            await asyncio.sleep(POLL_EVERY_S)
            fault = await asyncio.to_thread(write_error, self._monitor_port)
            if fault:
                await self._recover(fault)
            else:
                self._record_healthy()

    async def _recover(self, fault: str) -> None:
        if missing := await asyncio.to_thread(self._missing):
            if self._last_logged != fault:
                log_line(f"the broker accepts no messages: {fault}; {missing}")
            self._last_logged = fault
            return
        log_line(f"the broker accepts no messages: {fault}; there is space now, so it is restarted")
        self._last_logged = ""
        await self._restart()
        self._healthy_since = time.monotonic()
        await asyncio.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, MAX_PAUSE_S)

    def _missing(self) -> str:
        """Return what prevents a useful restart; empty if nothing does."""
        try:
            space = space_at(self._store)
        except OSError as error:
            return f"its disk cannot be checked: {error}"
        if space.free >= MIN_FREE_BYTES:
            return ""
        wanted = format_size(MIN_FREE_BYTES)
        return f"{format_size(space.free)} are free at {self._store}: it restarts once there are {wanted}"

    def _record_healthy(self) -> None:
        self._last_logged = ""
        if time.monotonic() - self._healthy_since > HEALTHY_AFTER_S:
            self._pause_s = FIRST_PAUSE_S


def write_error(monitor_port: int) -> str:
    """Return why the broker refuses all messages until it is restarted; empty if it does not, or is away."""
    connection = http.client.HTTPConnection("127.0.0.1", monitor_port, timeout=ANSWER_TIMEOUT_S)
    try:
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        body = answer.read()
        fault = json.loads(body) if answer.status != http.client.OK else {}
    except (OSError, http.client.HTTPException, ValueError):
        return ""
    finally:
        connection.close()
    error = str(fault.get("error", "")) if isinstance(fault, dict) else ""
    return error if any(word in error for word in NEEDS_RESTART) else ""
