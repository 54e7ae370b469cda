"""Fairness among many tasks woken together: only a few of them run per iteration of the event loop."""

from __future__ import annotations

import asyncio
from collections import deque

AT_ONCE = 16


class Turns:
    """Lets a limited number of tasks through per event loop iteration, in order of arrival.

    Other work on the loop then waits for those few only, not for all of them.
    """

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._left = at_once
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._armed = False

    async def take(self) -> None:
        """Wait for one's turn."""
        # Only if nobody waits, or a newcomer would pass those that were told to.
        if self._left and not self._waiting:
            self._left -= 1
            self._arm()
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._arm()
        await turn

    def _arm(self) -> None:
        if not self._armed:
            self._armed = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        self._armed = False
        self._left = self._at_once
        while self._waiting and self._left:
            turn = self._waiting.popleft()
            # A cancelled waiter uses up no turn.
            if not turn.done():
                turn.set_result(None)
                self._left -= 1
        # Once more after the last: turns that were used up come back with the next iteration.
        if self._waiting or self._left < self._at_once:
            self._arm()
