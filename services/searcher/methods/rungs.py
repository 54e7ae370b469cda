"""The rungs of a halving bracket, and the results that trials reported at them (searchers spec, 5.1, 5.2)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import attrgetter

import msgspec

from services.searcher.methods.protocol import MethodError

MOST_RUNGS = 100
_METRIC = attrgetter("metric")


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """A trial's result in a rung; smaller metrics are better here, whatever the user's direction."""

    metric: float
    request_id: str
    promoted: bool = False


class Rung(msgspec.Struct, frozen=True):
    """One length, and what trials reported at it, best first (in the top rung: in order of arrival)."""

    length: int
    entries: tuple[Entry, ...] = ()
    outstanding: int = 0
    """Trials on their way to a result in this rung."""

    def place(self, metric: float, *, before_equals: bool = False) -> int:
        """Where a metric belongs among the entries."""
        return (bisect_left if before_equals else bisect_right)(self.entries, metric, key=_METRIC)

    def with_entry(self, place: int, entry: Entry) -> Rung:
        """With one entry more."""
        entries = (*self.entries[:place], entry, *self.entries[place:])
        return msgspec.structs.replace(self, entries=entries)

    def with_promoted(self, place: int) -> Rung:
        """With the entry at `place` marked as gone on."""
        climbing = msgspec.structs.replace(self.entries[place], promoted=True)
        entries = (*self.entries[:place], climbing, *self.entries[place + 1 :])
        return msgspec.structs.replace(self, entries=entries)

    def without(self, request_id: str) -> Rung:
        """Without the results of one trial."""
        kept = tuple(entry for entry in self.entries if entry.request_id != request_id)
        return msgspec.structs.replace(self, entries=kept)

    def expecting(self, more: int) -> Rung:
        """With `more` trials on their way."""
        return msgspec.structs.replace(self, outstanding=self.outstanding + more)


def rung_lengths(num_rungs: int, max_length: int, divisor: float) -> list[int]:
    """Absolute lengths, ascending; neighbours may be equal when `max_length` is small."""
    if num_rungs > MOST_RUNGS:
        raise MethodError(f"a bracket of {num_rungs} rungs is too high: the most is {MOST_RUNGS}")
    return [max(int(max_length / divisor ** (num_rungs - 1 - i)), 1) for i in range(num_rungs)]
