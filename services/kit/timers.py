"""The due times in a state, without those that cannot be evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import structlog

from det_contracts.problems import Refused
from services.kit.roots import PageFault
from services.kit.rules import Key, Rules

S = TypeVar("S")
ALL = "(all)"
"""Used as the id if the times of a whole table cannot be read."""

log = structlog.get_logger()


class Timers(Generic[S]):
    """Evaluates the timers of one owner.

    A timer that fails is parked until its record changes, or an administrator has it retried. The others
    continue.
    """

    def __init__(self, rules: Rules[S], on_parked: Callable[[Key, str], None]) -> None:
        """`on_parked` is called with each record whose timer is parked, and the reason."""
        self._rules = rules
        self._on_parked = on_parked
        self.parked: dict[Key, str] = {}
        """Records whose timers failed, each with the reason."""

    def due(self, state: S) -> float | None:
        """Return the earliest time that the state waits for, in seconds since the epoch."""
        earliest = None
        # No generator around those of the tables: this is asked several times for every portion folded.
        for table in self._rules.timers:
            first = next(self._waiting(state, table), None)
            if first is not None and (earliest is None or first[0] < earliest):
                earliest = first[0]
        return earliest

    def facts(self, state: S, now: float) -> Iterator[tuple[Key, Any]]:
        """Yield an event for each time that is due by `now`, with the key of its record."""
        for table, kind in self._rules.timers.items():
            for at, id in self._waiting(state, table):
                if at > now:
                    break
                try:
                    fact = kind.fact(state, at, id)
                except PageFault:
                    raise
                except Exception as error:
                    self.park((table, id), error)
                    continue
                yield (table, id), fact

    def _waiting(self, state: S, table: str) -> Iterator[tuple[float, Any]]:
        if (table, ALL) in self.parked:
            return
        try:
            for at, id in self._rules.timers[table].waiting(state):
                if (table, id) not in self.parked:
                    yield at, id
        except PageFault:
            raise
        except Exception as error:
            # The index itself is broken, so which record is to blame cannot be said. It is tried again when
            # an administrator asks.
            self.park((table, ALL), error)

    def park(self, key: Key, error: Exception) -> None:
        """Exclude a timer that failed."""
        reason = str(error) if isinstance(error, Refused) else repr(error)
        self.parked[key] = f"its due time: {reason}"
        if not isinstance(error, Refused):
            record = f"{key[0]} {key[1]}"
            log.error("timer.failed", owner=self._rules.owner, record=record, exc_info=error)
        self._on_parked(key, self.parked[key])

    def release(self, keys: Iterable[Key]) -> None:
        """Include the timers of records again, because these changed."""
        for key in self.parked.keys() & keys:
            del self.parked[key]
