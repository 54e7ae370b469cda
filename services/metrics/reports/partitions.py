"""Reads partitions for queries: their owners, their chunks, and the values of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from services.kit.database import IDS_PER_QUERY, id_batches
from services.metrics.reports.chunks import VALUES, read_partial_chunk
from services.metrics.reports.tables import CHUNKS, PARTITIONS
from services.metrics.series.chunk import Chunk, merge

C = CHUNKS.c
P = PARTITIONS.c
BYTES_AT_ONCE = 16 * 1024 * 1024
"""Compressed size of the chunks that are in memory at once. A single chunk may be larger."""
_names = msgspec.json.Decoder(list[str])


class Partition(msgspec.Struct, frozen=True):
    """Reports of one run and group of a trial that have the same names."""

    id: int
    trial_id: int
    run: int
    kind: str
    merges: bool
    names: list[str]


def partitions_of(
    connection: sa.Connection, trial_ids: Sequence[int], kind: str | None = None
) -> list[Partition]:
    """Partitions of some trials, of one group or of all, by id."""
    partitions = []
    for id_batch in id_batches(sorted(set(trial_ids))):
        query = sa.select(PARTITIONS).where(P.trial_id.in_(id_batch))
        if kind is not None:
            query = query.where(P.kind == kind)
        partitions += [_partition(row) for row in connection.execute(query).mappings()]
    return sorted(partitions, key=lambda partition: partition.id)


def _partition(row: Any) -> Partition:
    names = _names.decode(row["names"])
    return Partition(row["id"], row["trial_id"], row["run"], row["kind"], bool(row["merges"]), names)


def chunk_rows(
    connection: sa.Connection,
    partitions: Sequence[Partition],
    *conditions: Any,
    columns: Sequence[Any] = (CHUNKS,),
) -> list[Any]:
    """Rows of CHUNKS, or some columns of them, by partition and steps."""
    rows: list[Any] = []
    for id_batch in id_batches([partition.id for partition in partitions]):
        query = sa.select(*columns).where(C.partition_id.in_(id_batch), *conditions)
        order = query.order_by(C.partition_id, C.first_steps, C.id)
        rows += connection.execute(order).mappings().all()
    return rows


def full_chunk_rows(
    connection: sa.Connection, partitions: Sequence[Partition], *conditions: Any
) -> Iterator[Any]:
    """Rows of CHUNKS in the order of `chunk_rows`, a few MiB at a time."""
    size = sa.func.length(C.frame) + sa.func.coalesce(sa.func.length(C.body), 0)
    headers = chunk_rows(connection, partitions, *conditions, columns=(C.id, size.label("bytes")))
    for ids in _id_batches_by_size(headers):
        rows = connection.execute(sa.select(CHUNKS).where(C.id.in_(ids))).mappings().all()
        by_id = {row["id"]: row for row in rows}
        yield from (by_id[id] for id in ids)


def _id_batches_by_size(headers: Iterable[Any]) -> Iterator[list[int]]:
    ids: list[int] = []
    total = 0
    for header in headers:
        if ids and (total + header["bytes"] > BYTES_AT_ONCE or len(ids) == IDS_PER_QUERY):
            yield ids
            ids, total = [], 0
        ids.append(header["id"])
        total += header["bytes"]
    if ids:
        yield ids


def values_of(connection: sa.Connection, partition: Partition) -> Iterator[tuple[str, list[int], list[Any]]]:
    """Each metric of a partition with its steps and values, ordered by steps, without archived reports.

    Of values that are not numbers, only the last and some others are as reported.
    """
    live = C.archived.is_(False)
    counts = [row["reports"] for row in chunk_rows(connection, [partition], live, columns=(C.reports,))]
    if not counts:
        return
    # As many metrics at once as memory allows, at least one.
    at_once = min(max(1, VALUES // sum(counts)), IDS_PER_QUERY)
    for start in range(0, len(partition.names), at_once):
        indexes = range(start, min(start + at_once, len(partition.names)))
        rows = full_chunk_rows(connection, [partition], live)
        chunk: Chunk = merge(read_partial_chunk(connection, row, indexes).without_texts() for row in rows)
        steps = chunk.steps.tolist()
        for index, column in zip(indexes, chunk.columns, strict=True):
            yield partition.names[index], steps, column.values()
