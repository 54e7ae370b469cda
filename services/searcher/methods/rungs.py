"""The rungs of a halving bracket, and the results that trials reported there (searchers spec, 5.1, 5.2)."""

from __future__ import annotations

import msgspec

from services.searcher.methods.protocol import MethodError
from services.searcher.methods.ranking import Entry, Position, Ranking

MAX_RUNGS = 100
replace = msgspec.structs.replace


class Rung(msgspec.Struct, frozen=True):
    """One length and its results, best first (in the top rung: in order of arrival)."""

    length: int
    entries: Ranking = Ranking()
    outstanding: int = 0
    """Number of trials that are yet to report in this rung."""
    settled: bool = False
    """Whether every entry was promoted or told to close."""

    def with_entry(self, position: Position, entry: Entry) -> Rung:
        """The rung with one more entry."""
        return replace(self, entries=self.entries.insert(position, entry), settled=False)

    def with_promoted(self, position: Position) -> Rung:
        """The rung with the entry at a place marked as promoted."""
        return replace(self, entries=self.entries.promote(position))

    def without_trial(self, request_id: str) -> Rung:
        """The rung without the results of one trial."""
        return replace(self, entries=self.entries.without_trial(request_id))

    def with_outstanding(self, more: int) -> Rung:
        """The rung with `more` additional trials expected."""
        return replace(self, outstanding=self.outstanding + more)


def rung_lengths(num_rungs: int, max_length: int, divisor: float) -> list[int]:
    """Absolute lengths, ascending. Neighbours may be equal if `max_length` is small."""
    if num_rungs > MAX_RUNGS:
        raise MethodError(f"a bracket of {num_rungs} rungs is too high: the most is {MAX_RUNGS}")
    return [max(int(max_length / divisor ** (num_rungs - 1 - i)), 1) for i in range(num_rungs)]
