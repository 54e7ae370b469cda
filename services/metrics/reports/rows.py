"""Reports as rows, in order of trial, run and steps."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import msgspec
import numpy as np
import sqlalchemy as sa

from det_contracts.queries import Reports, ReportWindow
from det_contracts.reports import is_training
from services.metrics.domain import VALIDATION
from services.metrics.paging import PAGE_BYTES, page_limit, page_of
from services.metrics.reports.open_chunks import OpenChunk, OpenChunks
from services.metrics.reports.partitions import Partition, chunk_rows, full_chunk_rows, partitions_of
from services.metrics.reports.tables import CHUNKS
from services.metrics.series.chunk import MICROSECONDS, unpack_ids, unpack_steps
from services.metrics.series.packing import Integers

C = CHUNKS.c
MERGED_BYTES = 4 * 1024 * 1024
"""Size as JSON of all reports at one step that are merged. A script may add gigabytes of keys at one step."""
VALUES_IN_TURN = 2**14
"""How many values of a chunk are copied at once."""
HEADER = (C.id, C.partition_id, C.first_steps, C.last_steps, C.archived)


class Row(msgspec.Struct, frozen=True):
    """One report."""

    id: int
    partition: Partition
    steps: int
    at: float
    values: dict[str, Any]
    batch_metrics: Any
    archived: bool

    @property
    def key(self) -> tuple[int, int]:
        """Reports with the same run, steps and group are one row."""
        return self.partition.run, self.steps


def reports(connection: sa.Connection, query: Reports) -> dict[str, Any]:
    """A page of reports in order of trial, run, steps."""
    limit = page_limit(query.limit)
    rows, more = page_of(_answer_rows(connection, query), _size, limit)
    return {"rows": rows, "more": more}


def _size(row: dict[str, Any]) -> int:
    return sum(memoryview(row[name]).nbytes for name in ("metrics", "batch_metrics") if row[name] is not None)


def _answer_rows(connection: sa.Connection, query: Reports) -> Iterator[dict[str, Any]]:
    """Trial by trial, starting where the previous page ended."""
    for trial_id in sorted(set(query.trial_ids)):
        after = None
        if query.after is not None and trial_id <= query.after[0]:
            if trial_id < query.after[0]:
                continue
            after = query.after[1:]
        partitions = _queried_partitions(connection, trial_id, query)
        for row in _rows_of(connection, partitions, archived=query.archived, after=after):
            yield _answer(row)


def report_window(connection: sa.Connection, query: ReportWindow) -> dict[str, Any]:
    """A range of a trial's reports by index, in order of steps.

    Reports that only add keys to another report have no index. They are part of the report that they add to,
    up to `MERGED_BYTES`.
    """
    partitions = _queried_partitions(connection, query.trial_id, query)
    live = C.archived.is_(False)
    keys = _window_keys(connection, [partition for partition in partitions if not partition.merges], live)
    total = len(keys)
    end = min(query.offset + page_limit(query.limit), total) if query.limit else query.offset
    if query.offset >= end:
        return {"total": total, "rows": []}
    first, last = tuple(keys[query.offset].tolist()), tuple(keys[end - 1].tolist())
    conditions = [live, *_between(first[0], last[0])]
    merged_rows = _merge_rows(partitions, _stored_rows(connection, partitions, conditions, (-1, -1)))
    page = _FirstRows()
    for row in merged_rows:
        if not row.partition.merges and first <= (key := _window_key(row)) <= last:
            page.add(key, _answer(row))
    rows, _ = page_of(page.in_order(), _size, end - query.offset)
    return {"total": total, "rows": rows}


def _window_key(row: Row) -> tuple[int, ...]:
    # Training before validation at the same step, as they happened.
    return row.steps, int(row.partition.kind == VALIDATION), row.partition.run, row.id


def _window_keys(connection: sa.Connection, partitions: list[Partition], live: Any) -> Integers:
    """The keys of all reports in some partitions, one in each line, in order."""
    by_id = {partition.id: partition for partition in partitions}
    parts = [np.empty((0, 4), np.int64)]
    for row in full_chunk_rows(connection, partitions, live):
        steps, partition = unpack_steps(row["frame"]), by_id[row["partition_id"]]
        same = [np.full(len(steps), n) for n in (int(partition.kind == VALIDATION), partition.run)]
        parts.append(np.column_stack([steps, *same, unpack_ids(row["frame"])]))
    keys = np.concatenate(parts)
    return keys[np.lexsort(keys.T[::-1])]


class _FirstRows:
    """Of the rows that are added, the first in the order of their keys: as many as one answer may hold."""

    def __init__(self) -> None:
        self._rows: list[tuple[tuple[int, ...], dict[str, Any]]] = []
        self._bytes = 0

    def add(self, key: tuple[int, ...], row: dict[str, Any]) -> None:
        # The smallest of the heap is the last by key.
        heapq.heappush(self._rows, (tuple(-part for part in key), row))
        self._bytes += _size(row)
        while self._bytes - _size(self._rows[0][1]) > PAGE_BYTES:
            self._bytes -= _size(heapq.heappop(self._rows)[1])

    def in_order(self) -> list[dict[str, Any]]:
        return [row for _, row in sorted(self._rows, key=lambda entry: entry[0], reverse=True)]


def _queried_partitions(
    connection: sa.Connection, trial_id: int, query: Reports | ReportWindow
) -> list[Partition]:
    partitions = partitions_of(connection, [trial_id], query.group)
    if query.profiled or query.group is not None:
        return partitions
    return [partition for partition in partitions if is_training(partition.kind)]


def _between(first: int, last: int) -> tuple[Any, ...]:
    return C.last_steps >= first, C.first_steps <= last


def _rows_of(
    connection: sa.Connection,
    partitions: list[Partition],
    *,
    archived: bool,
    after: tuple[int, int, int] | None,
) -> Iterator[Row]:
    """The reports after `after`, by run, steps and id. Chunks are read when they are reached."""
    start = (after[0], after[1]) if after else (-1, -1)
    conditions = [] if archived else [C.archived.is_(False)]
    for row in _merge_rows(partitions, _stored_rows(connection, partitions, conditions, start)):
        if after is None or (*row.key, row.id) > after:
            yield row


def _merge_rows(partitions: list[Partition], rows: Iterator[Row]) -> Iterator[Row]:
    """The rows, with those that only add keys merged into the rows that they add to."""
    if not any(partition.merges for partition in partitions):
        yield from rows
        return
    for _, same in groupby(rows, key=lambda row: row.key):
        yield from _merge_same_steps(same)


def _stored_rows(
    connection: sa.Connection, partitions: list[Partition], conditions: Sequence[Any], start: tuple[int, int]
) -> Iterator[Row]:
    """Reports as stored, by run, steps and id, starting at run and steps `start`.

    Steps and ids of all chunks that overlap are in memory, but only so many of their values.
    """
    by_id = {partition.id: partition for partition in partitions}
    heap: list[tuple[int, int, int, int, int]] = []
    archived: dict[int, tuple[Partition, bool]] = {}
    for header in chunk_rows(connection, partitions, *conditions, columns=HEADER):
        partition = by_id[header[C.partition_id]]
        if (partition.run, header["last_steps"]) >= start:
            # Only the head of each chunk: it is read when the order has come to it, and a page usually ends
            # before.
            heap.append((partition.run, header["first_steps"], header["id"], header["id"], -1))
            archived[header["id"]] = partition, bool(header["archived"])
    heapq.heapify(heap)
    open_chunks = OpenChunks(connection)
    keys: dict[int, tuple[Integers, Integers]] = {}
    while heap:
        run, _, _, chunk_id, index = heapq.heappop(heap)
        if index < 0:
            frame = connection.execute(sa.select(C.frame).where(C.id == chunk_id)).scalar_one()
            keys[chunk_id] = unpack_steps(frame), unpack_ids(frame)
            end = int(np.searchsorted(keys[chunk_id][0], start[1])) if run == start[0] else 0
        else:
            partition, is_archived = archived[chunk_id]
            end = _end_of_turn(run, *keys[chunk_id], index, heap[0] if heap else None, partition)
            yield from _rows_in(open_chunks.get(chunk_id), index, end, partition, is_archived)
        steps, ids = keys[chunk_id]
        if end < len(steps):
            heapq.heappush(heap, (run, int(steps[end]), int(ids[end]), chunk_id, end))
        else:
            open_chunks.close(chunk_id)
            del keys[chunk_id]


def _end_of_turn(
    run: int, steps: Integers, ids: Integers, index: int, next_head: Any, partition: Partition
) -> int:
    """Up to where the rows of a chunk come before those of all others, and are few enough for memory."""
    last = min(len(steps), index + max(1, VALUES_IN_TURN // max(1, len(partition.names))))
    end = index + 1
    while end < last and (next_head is None or (run, int(steps[end]), int(ids[end])) < next_head[:3]):
        end += 1
    return end


def _rows_in(
    chunk: OpenChunk, start: int, end: int, partition: Partition, is_archived: bool
) -> Iterator[Row]:
    for id, steps, at, extra, *values in chunk.reports(start, end):
        metrics = dict(zip(partition.names, values, strict=True))
        yield Row(id, partition, steps, at / MICROSECONDS, metrics, extra, is_archived)


def _merge_same_steps(rows: Iterable[Row]) -> Iterator[Row]:
    """Rows of one run and steps, merged up to `MERGED_BYTES`. A key beyond that is in a row of its own."""
    merged_rows: list[Row] = []
    first: dict[str, int] = {}
    total = 0
    for row in rows:
        total += _row_bytes(row)
        if total > MERGED_BYTES:
            yield from merged_rows
            merged_rows, first, total = [], {}, _row_bytes(row)
        kind = row.partition.kind
        if row.partition.merges and kind in first:
            merged_rows[first[kind]] = _merged(merged_rows[first[kind]], row)
        else:
            first.setdefault(kind, len(merged_rows))
            merged_rows.append(row)
    yield from merged_rows


def _row_bytes(row: Row) -> int:
    return len(msgspec.json.encode(row.values)) + len(msgspec.json.encode(row.batch_metrics))


def _merged(base: Row, row: Row) -> Row:
    batch_metrics = base.batch_metrics if row.batch_metrics is None else row.batch_metrics
    return msgspec.structs.replace(base, values=row.values | base.values, batch_metrics=batch_metrics)


def _answer(row: Row) -> dict[str, Any]:
    return {
        "id": row.id,
        "trial_id": row.partition.trial_id,
        "run": row.partition.run,
        "group": row.partition.kind,
        "steps_completed": row.steps,
        "at": row.at,
        "metrics": msgspec.Raw(msgspec.json.encode(row.values)),
        "batch_metrics": None
        if row.batch_metrics is None
        else msgspec.Raw(msgspec.json.encode(row.batch_metrics)),
        "archived": row.archived,
    }
