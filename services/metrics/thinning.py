"""Long series cut down to what a chart can show, without losing a spike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from services.metrics.values import finite


class Point(msgspec.Struct, frozen=True, array_like=True):
    """What one report says of the metrics that were asked for."""

    steps: int
    at: float
    epoch: float | None
    values: Mapping[str, Any]


Kept = tuple[int, Point]
"""A point and its place in the series."""


class Thinner:
    """Takes a series point by point and keeps about `limit` of them.

    Steps from `first` to `last` are cut into equal stretches, as many as leave room for the smallest and
    the largest value of each name in each of them; the first and the last point stay as well. Of values that
    are not finite, one per stretch stays while there is room.
    """

    def __init__(self, names: Sequence[str], limit: int, first: int, last: int) -> None:
        self._limit = limit
        self._first = first
        self._buckets = max(1, (limit - 2) // (2 * max(1, len(names))))
        self._span = max(1, last - first + 1)
        self._whole: list[Kept] = []
        self._extremes: dict[tuple[int, str], tuple[Kept, Kept]] = {}
        self._odd: dict[tuple[int, str], Kept] = {}
        self._ends: dict[int, Point] = {}
        self._count = 0

    def add(self, point: Point) -> None:
        """The next point of the series."""
        kept = (self._count, point)
        self._count += 1
        if self._count <= self._limit:
            self._whole.append(kept)
        bucket = (point.steps - self._first) * self._buckets // self._span
        for name, value in point.values.items():
            self._rank((bucket, name), kept, finite(value))
        self._ends = {0: self._ends.get(0, point), 1: point}

    def _rank(self, place: tuple[int, str], kept: Kept, value: float | None) -> None:
        if value is None:
            self._odd.setdefault(place, kept)
            return
        low, high = self._extremes.get(place, (kept, kept))
        name = place[1]
        self._extremes[place] = (
            kept if value < low[1].values[name] else low,
            kept if value > high[1].values[name] else high,
        )

    def points(self) -> list[Point]:
        """The series as it is, or what is left of it, by steps."""
        if self._count <= self._limit:
            chosen = dict(self._whole)
        else:
            chosen = {0: self._ends[0], self._count - 1: self._ends[1]}
            chosen |= dict(kept for pair in self._extremes.values() for kept in pair)
            room = max(0, self._limit - len(chosen))
            chosen |= dict(list(self._odd.values())[:room])
        return [point for _, point in sorted(chosen.items(), key=lambda item: (item[1].steps, item[0]))]


class Nearest:
    """Takes a series point by point and keeps the one nearest to `steps`; of two, the first."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._found: Point | None = None

    def add(self, point: Point) -> None:
        """The next point of the series."""
        if self._found is None or self._away(point) < self._away(self._found):
            self._found = point

    def _away(self, point: Point) -> int:
        return abs(point.steps - self._steps)

    def points(self) -> list[Point]:
        """That point, if there was any."""
        return [] if self._found is None else [self._found]
