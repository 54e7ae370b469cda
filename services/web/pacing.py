"""Limits each client's concurrent requests and request rate, so that no client slows others down.

A client is a user, an API token, the script of one run, or an address if it is not logged in. Requests above
the rate are delayed, so a client that sends one request after the other never notices. A client with too many
waiting requests is told to retry later.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterable

from services.kit.admission import UNLIMITED, Admission, Busy
from services.kit.process_metrics import Reading
from services.web.logins import TokenBucket
from services.web.proxies import site_of

WITHIN_S = 10.0
"""Maximum time in seconds that a request waits for its turn; clients wait longer for an answer."""
BURST_S = 10.0
"""Seconds of unused rate that a client may use at once."""


class Pacing:
    """Concurrent and waiting requests by client."""

    def __init__(self, each: int, per_second: float) -> None:
        """Set the limits per client: concurrent requests (as many again may wait) and requests per second."""
        self.admission = Admission(
            "requests in hand",
            at_once=UNLIMITED,
            each=each,
            each_waiting=each,
            patience_s=WITHIN_S,
            retry_after_s=1,
        )
        burst = max(1, int(per_second * BURST_S))
        self._rate = TokenBucket(burst, every_s=1 / per_second) if per_second > 0 else None
        self.refused = 0

    async def acquire(self, who: str) -> None:
        """Take a place in `admission` when it is this client's turn; release it there. Raises `Busy`."""
        try:
            await self.admission.acquire(who)
        except Busy:
            self.refused += 1
            raise
        try:
            # With the place already taken: otherwise all that wait for the rate would start at once.
            await self._turn(who)
        except BaseException:
            self.admission.release(who)
            raise

    async def _turn(self, who: str) -> None:
        if self._rate is None:
            return
        now = time.monotonic()
        wait_s = self._rate.wait_s(who, now)
        if wait_s > WITHIN_S:
            self.refused += 1
            raise Busy("exhausted", "too many requests in too short a time", math.ceil(wait_s))
        # Before the sleep, so that the next request of this client waits behind this one.
        self._rate.consume(who, now)
        if wait_s > 0:
            await asyncio.sleep(wait_s)

    def readings(self) -> Iterable[Reading]:
        """Prometheus readings."""
        yield Reading("requests_refused", "Requests of clients that had too many", (), {(): self.refused})


class RequestSlot:
    """The place of one request, taken once its client is known."""

    def __init__(self, pacing: Pacing) -> None:
        self._pacing = pacing
        self._who: str | None = None

    async def acquire(self, who: str) -> None:
        """Wait for the client's turn. Raises `Busy`."""
        await self._pacing.acquire(who)
        self._who = who

    def release(self) -> None:
        """Release the place when the answer begins or there will be none. May be called repeatedly."""
        who, self._who = self._who, None
        if who is not None:
            self._pacing.admission.release(who)


def anonymous_client(address: str) -> str:
    """Return the client name of an anonymous request."""
    return f"at {site_of(address)}"
