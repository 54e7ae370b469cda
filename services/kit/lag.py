"""How old the oldest thing is that is known to be in the log and not folded, or folded and not saved.

A stream that never rests is never quite read to its end, so "is there anything left?" says nothing. What
counts is the age of what is left: how long ago it became known that the stream reaches that far.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

import structlog

from services.kit.processor_waits import waited_s

GRAIN_S = 0.25
"""What becomes known within such a time is remembered as one: ages may be told by so much too large."""
LOOK_EVERY_S = 1.0

log = structlog.get_logger()


def _waited_here_s() -> float:
    return waited_s(threading.get_native_id()) or 0.0


class _Known(NamedTuple):
    at: float
    waited: float
    total: int


class Behind:
    """Counts what is known to be there and what is done of it, both since the beginning.

    Ages are told without the time that the calling thread has waited for a processor: to be busy is no fault.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, waited: Callable[[], float] = _waited_here_s
    ) -> None:
        self.allowed_s = 0.0
        """So old it may become on purpose; counts as no age."""
        self._clock = clock
        self._waited = waited
        self._known: deque[_Known] = deque()
        self._done = 0

    def known(self, total: int) -> None:
        """That many are there in all; less than was known before where some were removed unread."""
        while self._known and self._known[-1].total > total:
            removed = self._known.pop()
            if total > self._reached():
                self._known.append(removed._replace(total=total))
        if total <= self._reached():
            return
        now = self._clock()
        if self._known and now - self._known[-1].at < GRAIN_S:
            self._known[-1] = self._known[-1]._replace(total=total)
        else:
            self._known.append(_Known(now, self._waited(), total))

    def _reached(self) -> int:
        return self._known[-1].total if self._known else self._done

    def done(self, total: int) -> None:
        """That many are done in all."""
        self._done = total
        while self._known and self._known[0].total <= total:
            self._known.popleft()

    def begin_again(self) -> None:
        """What is left counts from now on: nobody could do, or had to do, anything about it before."""
        if self._known:
            self._known = deque([_Known(self._clock(), self._waited(), self._known[-1].total)])

    @property
    def left(self) -> int:
        """How many are known to be there and not done."""
        return self._reached() - self._done

    @property
    def age_s(self) -> float:
        """For how long the oldest of what is left is overdue, in seconds; 0 when nothing is."""
        if not self._known:
            return 0.0
        first = self._known[0]
        age = self._clock() - first.at - (self._waited() - first.waited)
        return max(age - self.allowed_s, 0.0)


class Lags:
    """Tells once of each time that something is further behind than it may be, and when that is over."""

    def __init__(self, limit_s: float, position: Callable[[str], int]) -> None:
        """`position` is how far the thing of a name is, to be told with it."""
        self._limit_s = limit_s
        self._position = position
        self._longest: dict[str, float] = {}

    def look(self, behind: Mapping[str, Behind], *, judged: bool) -> None:
        """Look at each thing by name; where it is not to be judged just now, its time begins again."""
        for name, one in behind.items():
            if not judged:
                one.begin_again()
            self._judge(name, one, one.age_s)

    def _judge(self, name: str, one: Behind, age_s: float) -> None:
        seconds = round(max(age_s, self._longest.get(name, 0.0)), 1)
        if name in self._longest:
            self._longest[name] = seconds
            if age_s < self._limit_s / 2:
                del self._longest[name]
                log.info("log.caught_up", what=name, position=self._position(name), seconds=seconds)
        elif age_s > self._limit_s:
            self._longest[name] = seconds
            log.warning("log.lags", what=name, position=self._position(name), left=one.left, seconds=seconds)


async def tell_lags(
    limit_s: float,
    behind: Callable[[], Mapping[str, Behind]],
    judged: Callable[[], bool],
    position: Callable[[str], int],
) -> None:
    """Look once a second until cancelled; not at all for a limit of 0."""
    lags = Lags(limit_s, position)
    while limit_s > 0:
        await asyncio.sleep(LOOK_EVERY_S)
        lags.look(behind(), judged=judged())
