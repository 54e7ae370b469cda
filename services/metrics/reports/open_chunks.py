"""Chunks that are read in turns, of which only some are in memory at once."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from services.metrics.reports.chunks import read_chunk
from services.metrics.reports.tables import CHUNKS
from services.metrics.series.chunk import Chunk

OPEN_BYTES = 64 * 1024 * 1024
"""Memory for all chunks together. The one in use may be larger."""
TEXT_WEIGHT, NUMBER_BYTES = 16, 40
"""What a byte of JSON may take in memory, as in a list of empty lists, and what a number in a list takes."""


class OpenChunk:
    """A chunk whose values are objects, for those who need only some of its reports at a time."""

    def __init__(self, chunk: Chunk) -> None:
        batch_metrics = chunk.batch_metrics or [None] * len(chunk)
        columns = [column.values() for column in chunk.columns]
        self._columns = [chunk.ids.tolist(), chunk.steps.tolist(), chunk.at.tolist(), batch_metrics, *columns]
        numbers = len(self._columns) * len(chunk)
        self.bytes = NUMBER_BYTES * numbers + TEXT_WEIGHT * int(chunk.text_bytes().sum())

    def reports(self, start: int, end: int) -> zip[tuple[Any, ...]]:
        """Of each report in a range: id, steps, time, per-batch metrics, and the values of all columns."""
        return zip(*(column[start:end] for column in self._columns), strict=True)


class OpenChunks:
    """Reads chunks, and keeps those that were used last."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._open: dict[int, OpenChunk] = {}
        """By id, in the order of their last use."""
        self._bytes = 0

    def get(self, id: int) -> OpenChunk:
        """A chunk with all its columns."""
        chunk = self._open.pop(id, None)
        if chunk is None:
            row = self._connection.execute(sa.select(CHUNKS).where(CHUNKS.c.id == id)).mappings().one()
            chunk = OpenChunk(read_chunk(self._connection, row))
            self._bytes += chunk.bytes
        self._open[id] = chunk
        while self._bytes > OPEN_BYTES and len(self._open) > 1:
            self.close(next(iter(self._open)))
        return chunk

    def close(self, id: int) -> None:
        """Forget a chunk."""
        chunk = self._open.pop(id, None)
        self._bytes -= chunk.bytes if chunk is not None else 0
