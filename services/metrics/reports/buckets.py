"""Curves for charts: a limited number of buckets, over any x, at a cost proportional to the width.

Where a bucket spans many points, the cells stored with sealed chunks are read instead of the points.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import sqlalchemy as sa

from det_contracts.queries import Buckets
from services.metrics.reports.chunks import SEALED
from services.metrics.reports.curves import by_group
from services.metrics.reports.partitions import Partition, chunk_rows, partitions_of
from services.metrics.reports.points import read_points
from services.metrics.reports.tables import CHUNKS, COLUMNS
from services.metrics.reports.xaxis import Window, XAxis, x_axis
from services.metrics.series import cells as reduced
from services.metrics.series.buckets import bucket
from services.metrics.series.cells import CELL, Cells

C = CHUNKS.c
HEADER = (C.reports,)


def buckets(connection: sa.Connection, query: Buckets) -> list[dict[str, Any]]:
    """Curves by trial, group and name."""
    curves = []
    for trial_id in dict.fromkeys(query.trial_ids):
        partitions = partitions_of(connection, [trial_id])
        groups = by_group(partition for partition in partitions if query.group in (None, partition.kind))
        for group, members in groups.items():
            x = x_axis(connection, partitions, query.x, group)
            for name in query.names:
                curve = _curve(connection, query, members, name, x)
                if curve is not None:
                    curves.append({"trial_id": trial_id, "group": group, "name": name} | curve)
    return curves


def _curve(
    connection: sa.Connection, query: Buckets, partitions: list[Partition], name: str, x: XAxis
) -> dict[str, Any] | None:
    partitions = [partition for partition in partitions if name in partition.names]
    window = x.steps_window(query.first, query.last)
    headers = chunk_rows(connection, partitions, *_overlap_conditions(window), columns=HEADER)
    # Only where a bucket spans several cells is reading them exact enough, and cheaper than the points.
    if x.monotone and sum(row["reports"] for row in headers) > CELL * query.width:
        cells = _cells(connection, partitions, name, window)
    else:
        cells = _points(connection, partitions, name, window)
    return bucket(cells, x.x_values(cells), query.first, query.last, query.width)


def _overlap_conditions(window: Window) -> tuple[Any, ...]:
    return C.archived.is_(False), C.last_steps >= window[0], C.first_steps <= window[1]


def _points(
    connection: sa.Connection, partitions: list[Partition], name: str, window: Window, *conditions: Any
) -> Cells:
    points = read_points(connection, partitions, [name], *window, *conditions).with_any([name])
    return reduced.points(points.steps, points.at, points.metrics[name][0].numbers)


def _cells(connection: sa.Connection, partitions: list[Partition], name: str, window: Window) -> Cells:
    """The stored cells of sealed chunks within the window, and the points of all other chunks."""
    inside = sa.and_(C.level == SEALED, C.first_steps >= window[0], C.last_steps <= window[1])
    parts = [_points(connection, partitions, name, window, sa.not_(inside))]
    for partition in partitions:
        parts += _stored(connection, partition, name, inside)
    joined = reduced.join(parts)
    return joined.take(np.argsort(joined.first, kind="stable"))


def _stored(
    connection: sa.Connection, partition: Partition, name: str, chosen: sa.ColumnElement[bool]
) -> Iterable[Cells]:
    query = (
        sa.select(C.marks, COLUMNS.c.cells)
        .join(COLUMNS, C.id == COLUMNS.c.chunk_id)
        .where(C.partition_id == partition.id, C.archived.is_(False), chosen)
        .where(COLUMNS.c.place == partition.names.index(name))
    )
    for marks, cells in connection.execute(query):
        yield reduced.unpack(marks, cells)
