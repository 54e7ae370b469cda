"""Reads strands for queries: their owners, their chunks, and the values of their columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from services.metrics.reports.chunks import AT_ONCE, VALUES, read_partial_chunk, split_ids
from services.metrics.reports.tables import CHUNKS, STRANDS
from services.metrics.series.chunk import Chunk, merge

C = CHUNKS.c
S = STRANDS.c
_names = msgspec.json.Decoder(list[str])


class Strand(msgspec.Struct, frozen=True):
    """Reports of one run and group of a trial that have the same names."""

    id: int
    trial_id: int
    run: int
    kind: str
    merges: bool
    names: list[str]


def strands_of(connection: sa.Connection, trial_ids: Sequence[int], kind: str | None = None) -> list[Strand]:
    """Strands of some trials, of one group or of all, by id."""
    found = []
    for id_batch in split_ids(sorted(set(trial_ids))):
        query = sa.select(STRANDS).where(S.trial_id.in_(id_batch))
        if kind is not None:
            query = query.where(S.kind == kind)
        found += [_strand(row) for row in connection.execute(query).mappings()]
    return sorted(found, key=lambda strand: strand.id)


def _strand(row: Any) -> Strand:
    names = _names.decode(row["names"])
    return Strand(row["id"], row["trial_id"], row["run"], row["kind"], bool(row["merges"]), names)


def chunk_rows(
    connection: sa.Connection, strands: Sequence[Strand], *conditions: Any, columns: Sequence[Any] = (CHUNKS,)
) -> list[Any]:
    """Rows of CHUNKS, or some columns of them, by strand and steps."""
    found: list[Any] = []
    for id_batch in split_ids([strand.id for strand in strands]):
        query = sa.select(*columns).where(C.strand_id.in_(id_batch), *conditions)
        order = query.order_by(C.strand_id, C.first_steps, C.id)
        found += connection.execute(order).mappings().all()
    return found


def values_of(connection: sa.Connection, strand: Strand) -> Iterator[tuple[str, list[int], list[Any]]]:
    """Each metric of a strand with its steps and values, ordered by steps, without archived reports."""
    rows = chunk_rows(connection, [strand], C.archived.is_(False))
    if not rows:
        return
    # As many metrics at once as memory allows, at least one.
    at_once = min(max(1, VALUES // sum(row["reports"] for row in rows)), AT_ONCE)
    for start in range(0, len(strand.names), at_once):
        indexes = range(start, min(start + at_once, len(strand.names)))
        chunk: Chunk = merge(read_partial_chunk(connection, row, indexes) for row in rows)
        steps = chunk.steps.tolist()
        for index, column in zip(indexes, chunk.columns, strict=True):
            yield strand.names[index], steps, column.values()
