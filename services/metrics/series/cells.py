"""Reduces series for charts: cells of neighbouring points, and buckets of neighbouring cells.

A cell keeps the smallest, largest and last value, the sum and the count of its points, so cells can be joined
without loss. A bucket is a union of whole cells, so its numbers are exact for its points.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from services.metrics.series.packing import Array, Flags, Floats, Integers

# A byte holds the counts of a cell, so 255 is the most. With 64, a million points become 16,000 cells: some
# ten for each pixel of a chart.
CELL = 64
"""Number of points in a stored cell."""


@dataclass(frozen=True)
class Cells:
    """Arrays with one element per cell, in order."""

    first: Integers
    """Steps of the first point."""
    steps: Integers
    """Steps of the last point."""
    at: Integers
    """Microseconds of the last point."""
    low: Floats
    """NaN if no value is finite, as for `high` and `last`."""
    high: Floats
    last: Floats
    """Last finite value."""
    sum: Floats
    """Sum of the finite values; infinite on overflow."""
    finite: Integers
    """Number of finite values."""
    count: Integers
    """Number of all values."""

    def __len__(self) -> int:
        return len(self.steps)

    def take(self, indexes: Array | slice) -> Cells:
        """Some of the cells."""
        return Cells(*(getattr(self, field.name)[indexes] for field in fields(self)))


def points(steps: Integers, at: Integers, values: Floats, present: Flags | None = None) -> Cells:
    """One cell per point. `present` says which points have a value."""
    finite = np.isfinite(values)
    shown = np.where(finite, values, np.nan)
    count = np.ones(len(steps), np.int64) if present is None else present.astype(np.int64)
    sums = np.where(finite, values, 0.0)
    return Cells(steps, steps, at, shown, shown, shown, sums, finite.astype(np.int64), count)


def join(parts: list[Cells]) -> Cells:
    """Concatenate cells."""
    if len(parts) == 1:
        return parts[0]
    return Cells(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Cells)))


def reduce(cells: Cells, starts: Integers) -> Cells:
    """Join neighbouring cells. `starts` are the indexes at which the new ones begin, 0 first."""
    ends = np.append(starts[1:], len(cells)) - 1
    # Large values may add up to infinity, and infinities of both signs to NaN. Both are answers.
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.add.reduceat(cells.sum, starts)
    return Cells(
        cells.first[starts],
        cells.steps[ends],
        cells.at[ends],
        # `fmin` and not `min`: NaN stands for "no finite value" and must not win.
        np.fmin.reduceat(cells.low, starts),
        np.fmax.reduceat(cells.high, starts),
        _last(cells.last, starts, ends),
        sums,
        np.add.reduceat(cells.finite, starts),
        np.add.reduceat(cells.count, starts),
    )


def _last(values: Floats, starts: Integers, ends: Integers) -> Floats:
    """The last finite value of each stretch."""
    indexes = np.where(np.isnan(values), -1, np.arange(len(values)))
    newest = np.maximum.accumulate(indexes)[ends]
    return np.where(newest >= starts, values[np.maximum(newest, 0)], np.nan)


def shrink(steps: Integers, at: Integers, values: Floats, present: Flags | None = None) -> Cells:
    """The cells that are stored for a column."""
    return reduce(points(steps, at, values, present), np.arange(0, len(steps), CELL))


def pack_values(cells: Cells) -> bytes:
    """The values of cells, without steps and times. Not compressed, so that they can be read fast."""
    floats = np.stack([cells.low, cells.high, cells.last, cells.sum])
    return floats.tobytes() + np.stack([cells.finite, cells.count]).astype(np.uint8).tobytes()


def pack_marks(steps: Integers, at: Integers) -> bytes:
    """Where the cells of a chunk begin and end."""
    starts = np.arange(0, len(steps), CELL)
    ends = np.append(starts[1:], len(steps)) - 1
    return np.stack([steps[starts], steps[ends], at[ends]]).tobytes()


def unpack(marks: bytes, values: bytes) -> Cells:
    """Restore cells from their stored form."""
    first, steps, at = np.frombuffer(marks, np.int64).reshape(3, -1)
    size = len(first)
    low, high, last, sums = np.frombuffer(values, np.float64, 4 * size).reshape(4, size)
    finite, count = np.frombuffer(values, np.uint8, 2 * size, 4 * size * 8).astype(np.int64).reshape(2, size)
    return Cells(first, steps, at, low, high, last, sums, finite, count)
