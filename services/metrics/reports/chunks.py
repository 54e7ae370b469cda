"""Chunks of reports in the tables: few and large, however many small ones arrive.

The reports that one commit adds to a partition form a chunk. Sixteen chunks of a level are merged into one,
and once there are enough reports they are sealed: one row per metric, stored with cells for charts, and never
merged again. So each report is written about four times, and a partition has fewer than fifty unsealed
chunks.

A report may hold megabytes of text, so a chunk is also full when it has enough bytes: databases store a value
of at most 1 GB, and what cannot be saved would stop the service for everybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from services.kit.database import id_batches
from services.metrics.reports.tables import CHUNKS, COLUMNS
from services.metrics.series import cells
from services.metrics.series.chunk import (
    Chunk,
    merge,
    pack_column,
    pack_columns,
    pack_frame,
    unpack,
    unpack_column,
    unpack_columns,
    unpack_ids,
)
from services.metrics.series.column import Column

C = CHUNKS.c
FAN = 16
"""Number of chunks of one level that make one of the next."""
SEALED = 3
"""The level above those that are merged."""
HEAVY = 4
"""The level of chunks that are full by their bytes, with too few reports for a row per metric."""
BYTES = 2 * 1024 * 1024
"""Size as JSON of texts, maps and per-batch metrics in a chunk that is full by its bytes."""
LARGEST, SMALLEST = 4096, 16
"""Largest and smallest number of reports in a sealed chunk."""
VALUES = 2**20
"""Number of values in a sealed chunk, which limits its reports if they have many metrics."""
# Built once: to build a statement takes longer than to run it, and this one runs in each save.
_UNSEALED = (
    sa.select(C.partition_id, C.level, sa.func.count(), sa.func.sum(C.reports))
    .where(
        C.partition_id.in_(sa.bindparam("of_partitions", expanding=True)),
        C.level < SEALED,
        C.archived.is_(False),
    )
    .group_by(C.partition_id, C.level)
)


def chunk_capacity(names: int) -> int:
    """Number of reports in a sealed chunk with this many metrics each."""
    return max(SMALLEST, min(LARGEST, VALUES // max(1, names)))


def add(connection: sa.Connection, fresh: dict[int, Chunk]) -> None:
    """Add one chunk to each partition, by partition id. Merges and seals chunks when due."""
    unsealed = _unsealed_counts(connection, fresh)
    new_chunks: list[tuple[int, Chunk, bool]] = []
    stale: list[int] = []
    for partition, chunk in fresh.items():
        level = _level_to_merge(unsealed.get(partition, {}), chunk)
        if level >= 0:
            chosen = sa.and_(C.partition_id == partition, C.level <= level, C.archived.is_(False))
            rows = list(_rows(connection, sa.select(CHUNKS).where(chosen).order_by(C.id)))
            stale += [row["id"] for row in rows]
            chunk = merge([*(read_chunk(connection, row) for row in rows), chunk])
        new_chunks += [(partition, part, False) for part in parts_of(chunk)]
    # Before the insertion: a merged chunk has the smallest id of its reports, which one of these has, too.
    _delete(connection, stale)
    insert(connection, new_chunks)


def parts_of(chunk: Chunk) -> Iterator[Chunk]:
    """A chunk of any size as chunks of which all but the last are full."""
    return chunk.split(chunk_capacity(len(chunk.columns)), BYTES)


def _unsealed_counts(
    connection: sa.Connection, partitions: Iterable[int]
) -> dict[int, dict[int, tuple[int, int]]]:
    """By partition and level: the number of unsealed chunks and of their reports."""
    counts: dict[int, dict[int, tuple[int, int]]] = {}
    for id_batch in id_batches(partitions):
        for partition, level, chunks, reports in connection.execute(_UNSEALED, {"of_partitions": id_batch}):
            counts.setdefault(partition, {})[level] = (chunks, int(reports))
    return counts


def _level_to_merge(unsealed: dict[int, tuple[int, int]], fresh: Chunk) -> int:
    """The highest level whose chunks, with those below, are to be merged with a new one; -1: none."""
    if len(fresh) + sum(reports for _, reports in unsealed.values()) >= chunk_capacity(len(fresh.columns)):
        return SEALED - 1
    # The new chunk counts where it will lie, so that a level never holds more than the fan.
    full = [level for level, (chunks, _) in unsealed.items() if chunks + (level == _level(fresh)) >= FAN]
    return max(full, default=-1)


def _level(chunk: Chunk) -> int:
    if len(chunk) >= chunk_capacity(len(chunk.columns)):
        return SEALED
    if chunk.text_bytes().sum() >= BYTES:
        return SEALED if len(chunk) >= cells.CELL else HEAVY
    return 0 if len(chunk) < FAN else 1 if len(chunk) < FAN * FAN else 2


def insert(connection: sa.Connection, chunks: Sequence[tuple[int, Chunk, bool]]) -> None:
    """Store chunks unchanged: (partition, chunk, whether it is archived)."""
    rows = [_row(partition, chunk, archived) for partition, chunk, archived in chunks]
    if rows:
        connection.execute(sa.insert(CHUNKS), rows)
    sealed = (chunk for row, (_, chunk, _) in zip(rows, chunks, strict=True) if row["level"] == SEALED)
    columns = [row for chunk in sealed for row in _column_rows(chunk)]
    if columns:
        connection.execute(sa.insert(COLUMNS), columns)


def _row(partition: int, chunk: Chunk, archived: bool) -> dict[str, Any]:
    level = _level(chunk)
    sealed = level == SEALED
    return {
        # Of its first report, so that a rebuild gives a chunk the same id.
        "id": int(chunk.ids.min()),
        "partition_id": partition,
        "level": level,
        "archived": archived,
        "reports": len(chunk),
        "names": len(chunk.columns),
        "first_steps": int(chunk.steps[0]),
        "last_steps": int(chunk.steps[-1]),
        "first_at": int(chunk.at.min()),
        "last_at": int(chunk.at.max()),
        "marks": cells.pack_marks(chunk.steps, chunk.at) if sealed else None,
        "frame": pack_frame(chunk),
        "body": None if sealed else pack_columns(chunk),
    }


def _column_rows(chunk: Chunk) -> Iterator[dict[str, Any]]:
    id = int(chunk.ids.min())
    for index, column in enumerate(chunk.columns):
        present = None if column.raw_values is None else column.is_number()
        column_cells = cells.shrink(chunk.steps, chunk.at, column.numbers, present)
        yield {
            "chunk_id": id,
            "place": index,
            "cells": cells.pack_values(column_cells),
            "body": pack_column(column),
        }


def read_chunk(connection: sa.Connection, row: Any) -> Chunk:
    """A stored chunk with all its columns."""
    if row["body"] is not None:
        return unpack(row["frame"], unpack_columns(row["body"], row["reports"], range(row["names"])))
    query = sa.select(COLUMNS.c.body).where(COLUMNS.c.chunk_id == row["id"]).order_by(COLUMNS.c.place)
    return unpack(row["frame"], [unpack_column(body) for (body,) in connection.execute(query)])


def read_partial_chunk(connection: sa.Connection, row: Any, indexes: Sequence[int]) -> Chunk:
    """A stored chunk with some of its columns."""
    if row["body"] is not None:
        return unpack(row["frame"], unpack_columns(row["body"], row["reports"], indexes))
    query = sa.select(COLUMNS.c.place, COLUMNS.c.body).where(
        COLUMNS.c.chunk_id == row["id"], COLUMNS.c.place.in_(indexes)
    )
    columns: dict[int, Column] = {place: unpack_column(body) for place, body in connection.execute(query)}
    return unpack(row["frame"], [columns[place] for place in indexes])


def archive(connection: sa.Connection, partition: int, first: int) -> None:
    """Archive a partition's reports at `first` steps and later."""
    chosen = sa.select(CHUNKS).where(
        C.partition_id == partition, C.archived.is_(False), C.last_steps >= first
    )
    rows = list(_rows(connection, chosen))
    within = [row["id"] for row in rows if row["first_steps"] >= first]
    for id_batch in id_batches(within):
        connection.execute(sa.update(CHUNKS).where(C.id.in_(id_batch)).values(archived=True))
    cut = [row for row in rows if row["first_steps"] < first]
    for row in cut:
        chunk = read_chunk(connection, row)
        # A chunk is sorted by steps, so a new run cuts it at one place.
        outdated = chunk.steps >= first
        _delete(connection, [row["id"]])
        insert(
            connection, [(partition, chunk.take(~outdated), False), (partition, chunk.take(outdated), True)]
        )


def drop(connection: sa.Connection, partition: int, first_id: int) -> None:
    """Remove a partition's reports with smaller ids."""
    for row in _rows(connection, sa.select(CHUNKS).where(C.partition_id == partition, C.id < first_id)):
        newer = unpack_ids(row["frame"]) >= first_id
        remaining = (
            [(partition, read_chunk(connection, row).take(newer), bool(row["archived"]))]
            if newer.any()
            else []
        )
        _delete(connection, [row["id"]])
        insert(connection, remaining)


def _rows(connection: sa.Connection, query: sa.Select[Any]) -> Iterable[Any]:
    return connection.execute(query).mappings().all()


def _delete(connection: sa.Connection, ids: list[int]) -> None:
    for id_batch in id_batches(ids):
        connection.execute(sa.delete(CHUNKS).where(C.id.in_(id_batch)))
        connection.execute(sa.delete(COLUMNS).where(COLUMNS.c.chunk_id.in_(id_batch)))
