"""The age of the oldest unprocessed item: in the log but not folded, or folded but not saved.

A stream that never rests is never read to its end, so "is anything left?" says nothing. What counts is the
age of what is left: how long ago it became known that the stream reaches that far.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

import structlog

from services.kit.awake_clock import awake
from services.kit.processor_waits import waited_s

SAVING = "saving"
"""Name for what is folded but not saved; streams have their own names."""
RESOLUTION_S = 0.25
"""Totals that become known within this time share one entry, which keeps the list short. An age may be too
large by this much, or too small if all of it was spent waiting for a processor."""
log = structlog.get_logger()


def _waited_here_s() -> float:
    return waited_s(threading.get_native_id()) or 0.0


class _Known(NamedTuple):
    at: float
    waited: float
    total: int


class Lag:
    """Counts the items known to exist and those done, both since the beginning.

    Ages exclude the time for which the calling thread waited for a processor, and the time for which the
    process was stopped or the machine slept, because neither is a fault.
    """

    def __init__(
        self, clock: Callable[[], float] = awake, waited: Callable[[], float] = _waited_here_s
    ) -> None:
        self.allowed_s = 0.0
        """Intended delay in seconds, which is subtracted from the age."""
        self._clock = clock
        self._waited = waited
        self._known_totals: deque[_Known] = deque()
        self._done = 0
        self._last_waited = (0.0, 0.0)
        """The total waiting time when it was last read, and the time of that reading."""

    def set_total(self, total: int) -> None:
        """Set the total number of items known. It may shrink if some were removed unread."""
        while self._known_totals and self._known_totals[-1].total > total:
            removed = self._known_totals.pop()
            if total > self._total():
                self._known_totals.append(removed._replace(total=total))
        if total <= self._total():
            return
        now = self._clock()
        if self._known_totals and now - self._known_totals[-1].at < RESOLUTION_S:
            self._known_totals[-1] = self._known_totals[-1]._replace(total=total)
        else:
            self._known_totals.append(_Known(now, self._cached_wait(now), total))

    def _cached_wait(self, now: float) -> float:
        # Asking the kernel for every message would take longer than everything else here.
        waited, at = self._last_waited
        if not at or now - at >= RESOLUTION_S:
            waited = self._waited()
            self._last_waited = waited, now
        return waited

    def _total(self) -> int:
        return self._known_totals[-1].total if self._known_totals else self._done

    def set_done(self, total: int) -> None:
        """Set the total number of items done."""
        self._done = total
        while self._known_totals and self._known_totals[0].total <= total:
            self._known_totals.popleft()

    def restart_age(self) -> None:
        """Restart the age of what is left from now, because nothing could be done about it before."""
        if self._known_totals:
            self._known_totals = deque([_Known(self._clock(), self._waited(), self._known_totals[-1].total)])

    @property
    def completed(self) -> int:
        """Number of items done."""
        return self._done

    @property
    def left(self) -> int:
        """Number of items known but not done."""
        return self._total() - self._done

    @property
    def age_s(self) -> float:
        """Seconds for which the oldest remaining item is overdue; 0 if none is."""
        if not self._known_totals:
            return 0.0
        first = self._known_totals[0]
        age = self._clock() - first.at - (self._waited() - first.waited)
        return max(age - self.allowed_s, 0.0)


class HasLag(Protocol):
    """Progress on something: what is known and what is done."""

    @property
    def completed(self) -> int: ...

    @property
    def left(self) -> int: ...

    @property
    def age_s(self) -> float: ...

    def restart_age(self) -> None: ...


class WorstLag:
    """Combines several measures of the same thing by taking the worst."""

    def __init__(self, *measures: HasLag) -> None:
        self._measures = measures

    @property
    def completed(self) -> int:
        """Sum of the items done; grows with any of the measures."""
        return sum(measure.completed for measure in self._measures)

    @property
    def left(self) -> int:
        """Number of items known but not done."""
        return max(measure.left for measure in self._measures)

    @property
    def age_s(self) -> float:
        """Seconds for which the oldest item is overdue."""
        return max(measure.age_s for measure in self._measures)

    def restart_age(self) -> None:
        """Restart the age of what is left from now."""
        for measure in self._measures:
            measure.restart_age()


class LagMonitor:
    """Logs once each time something falls too far behind, and once when it has caught up."""

    def __init__(self, limit_s: float, position: Callable[[str], int]) -> None:
        """`position` returns the position by name, to be logged with it. A limit of 0 disables the check."""
        self._limit_s = limit_s
        self._position = position
        self._longest_s: dict[str, float] = {}

    def check(self, lag: Mapping[str, HasLag], *, enforced: bool) -> dict[str, str]:
        """Check the age of each measure, by name. Unless `enforced`, ages restart instead.

        Returns a message for each that is too far behind.
        """
        for name, measure in lag.items():
            if not enforced:
                measure.restart_age()
            self._log_change(name, measure, measure.age_s)
        return {name: self._describe(name, lag[name]) for name in self._longest_s if name in lag}

    def _describe(self, name: str, measure: HasLag) -> str:
        where = f"at position {self._position(name)} with {measure.left} more behind it"
        return f"folded events are not saved, {where}" if name == SAVING else f"{name} is not read, {where}"

    def _log_change(self, name: str, measure: HasLag, age_s: float) -> None:
        seconds = round(max(age_s, self._longest_s.get(name, 0.0)), 1)
        if name in self._longest_s:
            self._longest_s[name] = seconds
            # Half of it, so that one that hovers at the limit is not reported again and again.
            if age_s < self._limit_s / 2:
                del self._longest_s[name]
                log.info("log.caught_up", what=name, position=self._position(name), seconds=seconds)
        elif 0 < self._limit_s < age_s:
            self._longest_s[name] = seconds
            log.warning(
                "log.lags", what=name, position=self._position(name), left=measure.left, seconds=seconds
            )
