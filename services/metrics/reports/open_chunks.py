"""Chunks that are read in turns, of which only some are in memory at once."""

from __future__ import annotations

import sqlalchemy as sa

from services.metrics.reports.chunks import read_chunk
from services.metrics.reports.tables import CHUNKS
from services.metrics.series.chunk import Chunk

OPEN_BYTES = 64 * 1024 * 1024
"""Memory for all chunks together. The one in use may be larger."""
TEXT_WEIGHT = 16
"""What a byte of JSON may take in memory, as in a list of empty lists."""


class OpenChunks:
    """Reads chunks, and keeps those that were used last."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._open: dict[int, tuple[Chunk, int]] = {}
        """By id, in the order of their last use, with their size."""
        self._bytes = 0

    def get(self, id: int) -> Chunk:
        """A chunk with all its columns."""
        entry = self._open.pop(id, None)
        if entry is None:
            row = self._connection.execute(sa.select(CHUNKS).where(CHUNKS.c.id == id)).mappings().one()
            chunk: Chunk = read_chunk(self._connection, row)
            entry = chunk, _memory_bytes(chunk)
            self._bytes += entry[1]
        self._open[id] = entry
        while self._bytes > OPEN_BYTES and len(self._open) > 1:
            self.close(next(iter(self._open)))
        return entry[0]

    def close(self, id: int) -> None:
        """Forget a chunk."""
        self._bytes -= self._open.pop(id, (None, 0))[1]


def _memory_bytes(chunk: Chunk) -> int:
    numbers = sum(column.numbers.nbytes for column in chunk.columns)
    return 3 * chunk.ids.nbytes + numbers + TEXT_WEIGHT * int(chunk.text_bytes().sum())
