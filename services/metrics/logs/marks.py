"""Locates errors and warnings in a log coarsely, for the overview strip beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import sqlalchemy as sa

from services.metrics.logs.chunk import KindStats, read_columns
from services.metrics.logs.tables import CHUNKS

PARTS = 240
"""Number of equal parts that a log is divided into."""
ERROR, WARNING = 1, 0


class Chunk(msgspec.Struct, frozen=True):
    """What is read of a chunk before its lines."""

    first_id: int
    number: int
    lines: int
    kind_stats: list[KindStats]


def marks(connection: sa.Connection, chunks: Sequence[Chunk]) -> list[list[int]]:
    """`[part, errors, warnings]` for each part of the log that has any, in order."""
    if not chunks:
        return []
    start, end = chunks[0].number, chunks[-1].number + chunks[-1].lines
    counts = np.zeros((PARTS, 2), np.int64)
    for chunk in chunks:
        errors = sum(stats.count for stats in chunk.kind_stats if stats.first_error is not None)
        warnings = sum(stats.count for stats in chunk.kind_stats if stats.kind.level == "WARNING")
        if not errors and not warnings:
            continue
        if chunk.lines <= (end - start) / PARTS:
            # It fits into one part or spans two neighbouring ones.
            part = _part_indexes(np.array([chunk.number]), start, end)[0]
            counts[part] += (warnings, errors)
        else:
            _add_lines(counts, connection, chunk, start, end)
    return [
        [int(part), int(counts[part][ERROR]), int(counts[part][WARNING])]
        for part in np.flatnonzero(counts.any(1))
    ]


def _add_lines(counts: Any, connection: sa.Connection, chunk: Chunk, start: int, end: int) -> None:
    query = sa.select(CHUNKS.c.columns).where(CHUNKS.c.first_id == chunk.first_id)
    columns = read_columns(connection.execute(query).scalar_one(), chunk.lines)
    warns = np.array([stats.kind.level == "WARNING" for stats in chunk.kind_stats], bool)[columns.kind]
    parts = _part_indexes(np.arange(chunk.lines) + chunk.number, start, end)
    counts[:, ERROR] += np.bincount(parts[columns.errors], minlength=PARTS)
    counts[:, WARNING] += np.bincount(parts[warns], minlength=PARTS)


def _part_indexes(numbers: Any, start: int, end: int) -> Any:
    return np.clip((numbers - start) * PARTS // max(end - start, 1), 0, PARTS - 1)
