"""The possible x axes of a chart: batches, time, epoch, or any metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa

from det_contracts.problems import invalid
from services.metrics.reports.partitions import Partition, chunk_rows
from services.metrics.reports.points import FARTHEST, read_points
from services.metrics.reports.tables import CHUNKS
from services.metrics.series.cells import Cells
from services.metrics.series.chunk import MICROSECONDS
from services.metrics.series.packing import Floats, Integers

C = CHUNKS.c
METRIC = "metric:"
TIMES = (C.first_at, C.last_at, C.first_steps, C.last_steps)
Bound = float | None
Window = tuple[int, int]


@dataclass(frozen=True)
class XAxis:
    """How steps and times map to x, and how a range of x maps to steps."""

    x_values: Callable[[Cells], Floats]
    """x of each cell's last point; NaN if it has none."""
    steps_window: Callable[[Bound, Bound], Window]
    """First and last steps that may lie between two values of x."""
    monotone: bool
    """Whether x never decreases as steps grow."""


def x_axis(connection: sa.Connection, partitions: Sequence[Partition], x: str, group: str) -> XAxis:
    """The x axis of one trial's charts. Raises `Refused` (invalid) for an unknown one.

    A metric's value holds until it is reported again. The metric of the chart's own group is used if it
    exists.
    """
    if x == "batches":
        return XAxis(lambda cells: cells.steps.astype(np.float64), _steps_between, True)
    if x == "time":
        return XAxis(lambda cells: cells.at / MICROSECONDS, _times_window(connection, partitions), True)
    if x != "epoch" and not x.startswith(METRIC):
        raise invalid(f"x must be batches, epoch, time or {METRIC}NAME, not {x!r}")
    name = x.removeprefix(METRIC)
    having = [partition for partition in partitions if name in partition.names]
    same_group = [partition for partition in having if partition.kind == group]
    points = read_points(connection, same_group or having, [name])
    values = points.metrics[name][0].numbers
    finite = np.isfinite(values)
    order = np.argsort(points.steps[finite], kind="stable")
    return _metric_axis(points.steps[finite][order], values[finite][order])


def _steps_between(first: Bound, last: Bound) -> Window:
    low = 0 if first is None else max(0, math.ceil(max(first, -1)))
    return low, FARTHEST if last is None else math.floor(min(last, FARTHEST))


def _times_window(
    connection: sa.Connection, partitions: Sequence[Partition]
) -> Callable[[Bound, Bound], Window]:
    rows = chunk_rows(connection, partitions, C.archived.is_(False), columns=TIMES)

    def between(first: Bound, last: Bound) -> Window:
        low = -math.inf if first is None else first * MICROSECONDS
        high = math.inf if last is None else last * MICROSECONDS
        overlapping = [row for row in rows if row["last_at"] >= low and row["first_at"] <= high]
        if not overlapping:
            return 0, -1
        return min(row["first_steps"] for row in overlapping), max(row["last_steps"] for row in overlapping)

    return between


def _metric_axis(steps: Integers, values: Floats) -> XAxis:
    monotone = bool((np.diff(values) >= 0).all())

    def of(cells: Cells) -> Floats:
        if not len(steps):
            return np.full(len(cells), np.nan)
        index = np.searchsorted(steps, cells.steps, side="right") - 1
        return np.where(index >= 0, values[np.maximum(index, 0)], np.nan)

    def between(first: Bound, last: Bound) -> Window:
        if not monotone or not len(steps):
            return 0, FARTHEST
        low = 0 if first is None else int(np.searchsorted(values, first, side="left"))
        high = len(steps) if last is None else int(np.searchsorted(values, last, side="right"))
        start = int(steps[low]) if low < len(steps) else FARTHEST
        return start, int(steps[high]) - 1 if high < len(steps) else FARTHEST

    return XAxis(of, between, monotone)
