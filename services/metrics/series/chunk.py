"""Reports of one partition in columns, as stored in the tables.

A partition consists of the reports of one run and group of a trial that have the same names. Its reports are
sorted by steps, then by id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from services.metrics.series.column import Column, Packed, join
from services.metrics.series.packing import (
    Integers,
    compress_body,
    decompress_body,
    pack_integers,
    unpack_integers,
)

MICROSECONDS = 1e6
LATEST = 9e15
"""Latest time in microseconds; later times are cut to it."""


@dataclass(frozen=True)
class Chunk:
    """Columns of equal length."""

    ids: Integers
    steps: Integers
    at: Integers
    """Microseconds since the epoch, UTC."""
    columns: tuple[Column, ...]
    """In the order of the partition's names."""
    batch_metrics: list[Any] | None = None
    """Per report, its per-batch metrics or None."""

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, indexes: Any) -> Chunk:
        """The reports at an index array, a mask or a slice."""
        batch_metrics = self.batch_metrics
        if batch_metrics is not None:
            batch_metrics = [batch_metrics[n] for n in np.arange(len(self))[indexes]]
        columns = tuple(column.take(indexes) for column in self.columns)
        return Chunk(self.ids[indexes], self.steps[indexes], self.at[indexes], columns, batch_metrics)

    def without_texts(self) -> Chunk:
        """The same reports with their numbers alone, and the last of other values, as they are in charts."""
        columns = tuple(column.without_texts() for column in self.columns)
        return Chunk(self.ids, self.steps, self.at, columns)

    def split(self, size: int, max_bytes: int) -> Iterator[Chunk]:
        """Parts of at most `size` reports. Each also ends where it reaches `max_bytes` of `text_bytes`."""
        ends = np.cumsum(self.text_bytes())
        start = 0
        while start < len(self):
            before = ends[start - 1] if start else 0
            end = min(start + size, int(np.searchsorted(ends, before + max_bytes)) + 1)
            yield self.take(slice(start, end))
            start = end

    def text_bytes(self) -> Integers:
        """Of each report, the size as JSON of what is not stored as numbers, per-batch metrics included."""
        sizes = np.zeros(len(self), np.int64)
        for values in (*(column.raw_values for column in self.columns), self.batch_metrics):
            if values is not None:
                bytes_of_each = (len(msgspec.json.encode(value)) for value in values)
                sizes += np.fromiter(bytes_of_each, np.int64, len(self))
        return sizes


def microseconds(at: Sequence[float]) -> Integers:
    """Times as stored, in microseconds."""
    return np.rint(np.clip(np.array(at, np.float64) * MICROSECONDS, -LATEST, LATEST)).astype(np.int64)


def merge(chunks: Iterable[Chunk]) -> Chunk:
    """All reports of several chunks of one partition, sorted."""
    parts = list(chunks)
    if len(parts) == 1:
        return sort(parts[0])
    batch_metrics = None
    if any(part.batch_metrics is not None for part in parts):
        batch_metrics = [metrics for part in parts for metrics in (part.batch_metrics or [None] * len(part))]
    joined = Chunk(
        np.concatenate([part.ids for part in parts]),
        np.concatenate([part.steps for part in parts]),
        np.concatenate([part.at for part in parts]),
        tuple(join(of) for of in zip(*(part.columns for part in parts), strict=True)),
        batch_metrics,
    )
    return sort(joined)


def sort(chunk: Chunk) -> Chunk:
    """The chunk sorted by steps, then by id."""
    # Nearly all chunks arrive sorted, and sorting would copy every column.
    rising = chunk.steps[1:] - chunk.steps[:-1]
    if (rising > 0).all():
        return chunk
    return chunk.take(np.lexsort((chunk.ids, chunk.steps)))


class Frame(msgspec.Struct, frozen=True, array_like=True):
    """The data of a chunk's reports other than metrics, as bytes."""

    ids: bytes
    steps: bytes
    at: bytes
    batch_metrics: bytes | None = None


def pack_frame(chunk: Chunk) -> bytes:
    """Pack everything of a chunk except its columns."""
    batch_metrics = (
        None if chunk.batch_metrics is None else compress_body(msgspec.json.encode(chunk.batch_metrics))
    )
    ids, steps, at = map(pack_integers, (chunk.ids, chunk.steps, chunk.at))
    return msgspec.msgpack.encode(Frame(ids, steps, at, batch_metrics))


def pack_columns(chunk: Chunk) -> bytes:
    """Pack all columns, concatenated into one. For small chunks."""
    # One body for all: a column of a few numbers would be smaller than its own header.
    return pack_column(join(chunk.columns)) if chunk.columns else b""


_frame = msgspec.msgpack.Decoder(Frame)
_column = msgspec.msgpack.Decoder(Packed)


def unpack_columns(body: bytes, reports: int, indexes: Iterable[int]) -> list[Column]:
    """Unpack some columns of the output of `pack_columns` for this many reports."""
    if not body:
        return []
    joined = unpack_column(body)
    return [joined.take(slice(index * reports, (index + 1) * reports)).normalized() for index in indexes]


def pack_column(column: Column) -> bytes:
    """Pack one column. For large chunks."""
    return msgspec.msgpack.encode(Packed.of(column))


def unpack_column(body: bytes) -> Column:
    """The inverse of `pack_column`."""
    return _column.decode(body).column()


def unpack_ids(frame: bytes) -> Integers:
    """Only the ids from the output of `pack_frame`."""
    return unpack_integers(_frame.decode(frame).ids)


def unpack_steps(frame: bytes) -> Integers:
    """Only the steps from the output of `pack_frame`."""
    return unpack_integers(_frame.decode(frame).steps)


def unpack(frame: bytes, columns: Iterable[Column]) -> Chunk:
    """A chunk from its frame and the columns that are needed."""
    decoded = _frame.decode(frame)
    batch_metrics = (
        None if decoded.batch_metrics is None else msgspec.json.decode(decompress_body(decoded.batch_metrics))
    )
    ids, steps, at = map(unpack_integers, (decoded.ids, decoded.steps, decoded.at))
    return Chunk(ids, steps, at, tuple(columns), batch_metrics)
