"""A persistent ordered list of results: versions share what did not change."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

import msgspec

MAX_RUN_LENGTH = 512
_METRIC = attrgetter("metric")


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A trial's result in a rung. Smaller metrics are better here, whatever the user's direction."""

    metric: float
    request_id: str
    promoted: bool = False


Run = tuple[Entry, ...]


class Position(NamedTuple):
    """A position in a ranking: the number of entries before it, and where that is."""

    rank: int
    run: int
    offset: int


def _first_metric(run: Run) -> float:
    return run[0].metric


class Ranking(msgspec.Struct, frozen=True, array_like=True):
    """Entries in order, split into runs of at most `MAX_RUN_LENGTH`; a change copies only one run."""

    count: int = 0
    sizes: tuple[int, ...] = (0,)
    runs: tuple[Run, ...] = ((),)

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Ranking:
        """Build a ranking from ordered entries."""
        ranking = cls()
        for entry in entries:
            ranking = ranking.insert(ranking.end_position(), entry)
        return ranking

    def position(self, metric: float, *, before_equals: bool = False) -> Position:
        """Where a metric belongs: after equal ones, or before them."""
        bisect = bisect_left if before_equals else bisect_right
        # From 1: the first run also takes what is smaller than its first entry, and it may be empty.
        run = bisect(self.runs, metric, lo=1, key=_first_metric) - 1
        offset = bisect(self.runs[run], metric, key=_METRIC)
        return Position(sum(self.sizes[:run]) + offset, run, offset)

    def position_at(self, index: int) -> Position:
        """The place of the entry with this index, which must exist."""
        before = 0
        for run, size in enumerate(self.sizes):
            if index < before + size:
                return Position(index, run, index - before)
            before += size
        raise IndexError(index)

    def end_position(self) -> Position:
        """The place after the last entry."""
        return Position(len(self), len(self.sizes) - 1, self.sizes[-1])

    def insert(self, position: Position, entry: Entry) -> Ranking:
        """The ranking with one more entry."""
        longer = [*self.runs[position.run]]
        longer.insert(position.offset, entry)
        half = len(longer) // 2
        parts = (longer,) if len(longer) <= MAX_RUN_LENGTH else (longer[:half], longer[half:])
        return self._replace_run(position.run, *parts, count_change=1)

    def promote(self, position: Position) -> Ranking:
        """The ranking with the entry at a place marked as promoted."""
        run = [*self.runs[position.run]]
        run[position.offset] = msgspec.structs.replace(run[position.offset], promoted=True)
        return self._replace_run(position.run, run, count_change=0)

    def without_trial(self, request_id: str) -> Ranking:
        """The ranking without the results of one trial."""
        for number, run in enumerate(self.runs):
            remaining = [entry for entry in run if entry.request_id != request_id]
            if len(remaining) < len(run):
                # A run may only be empty if it is the only one: the others are found by their first entry.
                parts = [remaining] if remaining or len(self.runs) == 1 else []
                return self._replace_run(number, *parts, count_change=len(remaining) - len(run))
        return self

    def _replace_run(self, number: int, *parts: list[Entry], count_change: int) -> Ranking:
        sizes, runs = [*self.sizes], [*self.runs]
        sizes[number : number + 1] = map(len, parts)
        runs[number : number + 1] = map(tuple, parts)
        return Ranking(self.count + count_change, tuple(sizes), tuple(runs))

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, position: Position) -> Entry:
        return self.runs[position.run][position.offset]

    def __iter__(self) -> Iterator[Entry]:
        return chain.from_iterable(self.runs)
