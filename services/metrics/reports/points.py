"""Reports of one group of a trial as arrays: the values of some metrics, point by point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from services.metrics.reports.chunks import read_partial_chunk
from services.metrics.reports.partitions import Partition, full_chunk_rows
from services.metrics.reports.tables import CHUNKS
from services.metrics.series.chunk import Chunk
from services.metrics.series.column import Column, join
from services.metrics.series.packing import Array, Flags, Integers

C = CHUNKS.c
FARTHEST = 2**53
"""Larger than any step."""


@dataclass(frozen=True)
class Points:
    """Reports in order of run, steps and id, each with those of the metrics that it has."""

    steps: Integers
    at: Integers
    """Microseconds since the epoch, UTC."""
    metrics: dict[str, tuple[Column, Flags]]
    """By name: the values, and which points have a number there."""

    def take(self, indexes: Array) -> Points:
        """Some of the points."""
        metrics = {name: (column.take(indexes), has[indexes]) for name, (column, has) in self.metrics.items()}
        return Points(self.steps[indexes], self.at[indexes], metrics)

    def with_any(self, names: Sequence[str]) -> Points:
        """The points that have a number for at least one of these metrics."""
        has_any = np.zeros(len(self.steps), np.bool_)
        for name in names:
            has_any |= self.metrics[name][1]
        return self if has_any.all() else self.take(has_any)


def read_points(
    connection: sa.Connection,
    partitions: Sequence[Partition],
    names: Sequence[str],
    first: int = 0,
    last: int = FARTHEST,
    *conditions: Any,
) -> Points:
    """Read some metrics of partitions of one group from `first` to `last` steps, without archived reports.

    With `conditions`, only the chunks that match them are read.
    """
    mine = {partition.id: partition for partition in partitions if not set(names).isdisjoint(partition.names)}
    window = (C.archived.is_(False), C.last_steps >= first, C.first_steps <= last, *conditions)
    parts: list[tuple[Partition, Chunk]] = []
    for row in full_chunk_rows(connection, list(mine.values()), *window):
        partition = mine[row[C.partition_id]]
        chunk = read_partial_chunk(
            connection, row, [partition.names.index(name) for name in names if name in partition.names]
        ).without_texts()
        if row["first_steps"] < first or row["last_steps"] > last:
            chunk = chunk.take((chunk.steps >= first) & (chunk.steps <= last))
        parts.append((partition, chunk))
    if not parts:
        return Points(np.array([], np.int64), np.array([], np.int64), {n: _empty_metric(0) for n in names})
    return _sort_points(parts, names)


def _empty_metric(count: int) -> tuple[Column, Flags]:
    return Column(np.full(count, np.nan)), np.zeros(count, np.bool_)


def _sort_points(parts: list[tuple[Partition, Chunk]], names: Sequence[str]) -> Points:
    steps = np.concatenate([chunk.steps for _, chunk in parts])
    at = np.concatenate([chunk.at for _, chunk in parts])
    ids = np.concatenate([chunk.ids for _, chunk in parts])
    runs = np.concatenate([np.full(len(chunk), partition.run) for partition, chunk in parts])
    merges = np.concatenate([np.full(len(chunk), partition.merges) for partition, chunk in parts])
    metrics = {name: _metric(parts, names, name) for name in names}
    points = Points(steps, at, metrics)
    if len(parts) > 1:
        # By run first: a step that a later run reported again comes behind, and stays apart from the earlier
        # one.
        order = np.lexsort((ids, steps, runs))
        points, runs, merges = points.take(order), runs[order], merges[order]
    return _join_added_keys(points, runs, merges) if merges.any() else points


def _metric(parts: list[tuple[Partition, Chunk]], names: Sequence[str], name: str) -> tuple[Column, Flags]:
    columns = []
    for partition, chunk in parts:
        if name in partition.names:
            index = [candidate for candidate in names if candidate in partition.names].index(name)
            column = chunk.columns[index]
            columns.append((column, column.is_number()))
        else:
            columns.append(_empty_metric(len(chunk)))
    return join(column for column, _ in columns), np.concatenate([has for _, has in columns])


def _join_added_keys(points: Points, runs: Integers, merges: Flags) -> Points:
    """Join points that add keys with the first point of the same run and steps, if there is one."""
    origin = _origins(points.steps, runs, merges)
    metrics = {}
    for name, (column, has) in points.metrics.items():
        source = np.arange(len(runs))
        added = np.flatnonzero((origin != source) & has)
        source[origin[added]] = added
        metrics[name] = (column.take(source), has[source])
    joined = Points(points.steps, points.at, metrics)
    return joined.take(origin == np.arange(len(runs)))


def _origins(steps: Integers, runs: Integers, merges: Flags) -> Integers:
    """Of each point, the place of the one that it adds keys to, or its own.

    A script may report any number of keys at one step, so no point is compared with all others there.
    """
    places = np.arange(len(runs))
    begins = np.ones(len(runs), np.bool_)
    begins[1:] = (runs[1:] != runs[:-1]) | (steps[1:] != steps[:-1])
    group = np.cumsum(begins) - 1
    first = np.full(int(group[-1]) + 1, len(runs))
    plain = np.flatnonzero(~merges)
    np.minimum.at(first, group[plain], plain)
    origins: Integers = np.where(merges & (first[group] < places), first[group], places)
    return origins


def point_values(points: Points, names: Sequence[str]) -> list[dict[str, Any]]:
    """The values of each point by name, only those that are numbers."""
    values: list[dict[str, Any]] = [{} for _ in points.steps]
    for name in names:
        column, has = points.metrics[name]
        for index in np.flatnonzero(has).tolist():
            values[index][name] = column.value(index)
    return values
