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
from services.metrics.paging import page_limit, page_of
from services.metrics.reports.chunks import read_chunk
from services.metrics.reports.partitions import Partition, chunk_rows, full_chunk_rows, partitions_of
from services.metrics.reports.tables import CHUNKS
from services.metrics.series.chunk import MICROSECONDS, Chunk, unpack_steps

C = CHUNKS.c
MERGED_BYTES = 4 * 1024 * 1024
"""Size as JSON of all reports at one step that are merged. A script may add gigabytes of keys at one step."""
HEADER = (C.id, C.partition_id, C.first_steps, C.last_steps)


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
    """A range of a trial's reports by index, in order of steps."""
    partitions = _queried_partitions(connection, query.trial_id, query)
    # Reports that only add keys to another report do not count as reports.
    base_partitions = [partition for partition in partitions if not partition.merges]
    live = C.archived.is_(False)
    total = sum(row["reports"] for row in chunk_rows(connection, base_partitions, live, columns=(C.reports,)))
    end = min(query.offset + query.limit, total)
    if query.offset >= end:
        return {"total": total, "rows": []}
    frames = full_chunk_rows(connection, base_partitions, live)
    steps = np.sort(np.concatenate([unpack_steps(row["frame"]) for row in frames]), kind="stable")
    first, last = int(steps[query.offset]), int(steps[end - 1])
    conditions = [live, *_between(first, last)]
    merged_rows = _merge_rows(partitions, _stored_rows(connection, partitions, conditions, (-1, -1)))
    within = [row for row in merged_rows if first <= row.steps <= last]
    # Training before validation at the same step, as they happened.
    within.sort(key=lambda row: (row.steps, row.partition.kind == VALIDATION))
    skipped = query.offset - int(np.searchsorted(steps, first, side="left"))
    rows, _ = page_of(map(_answer, within[skipped:]), _size, end - query.offset)
    return {"total": total, "rows": rows}


def _queried_partitions(
    connection: sa.Connection, trial_id: int, query: Reports | ReportWindow
) -> list[Partition]:
    partitions = partitions_of(connection, [trial_id], query.group)
    if query.profiled or query.group is not None:
        return partitions
    return [partition for partition in partitions if is_training(partition.kind)]


def _between(first: int, last: int) -> tuple[Any, ...]:
    return C.last_steps >= first, C.first_steps <= last


def rows_of(
    connection: sa.Connection,
    trial_id: int,
    group: str | None = None,
    *,
    archived: bool = False,
    after: tuple[int, int, int] | None = None,
) -> Iterator[Row]:
    """A trial's reports after `after`, by run, steps and id. Chunks are read when they are reached."""
    partitions = partitions_of(connection, [trial_id], group)
    return _rows_of(connection, partitions, archived=archived, after=after)


def _rows_of(
    connection: sa.Connection,
    partitions: list[Partition],
    *,
    archived: bool,
    after: tuple[int, int, int] | None,
) -> Iterator[Row]:
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
    """Reports as stored, by run, steps and id, starting at run and steps `start`."""
    by_id = {partition.id: partition for partition in partitions}
    heap: list[Any] = []
    for header in chunk_rows(connection, partitions, *conditions, columns=HEADER):
        partition = by_id[header[C.partition_id]]
        if (partition.run, header["last_steps"]) >= start:
            # Only the head of each chunk: its rows are read when the order has come to it, and a page usually
            # ends before.
            heap.append((partition.run, header["first_steps"], header["id"], 0, None))
    heapq.heapify(heap)
    while heap:
        run, _, id, index, rows = heapq.heappop(heap)
        if rows is None:
            rows = _read_chunk_rows(connection, id, by_id, start)
        else:
            yield rows[index]
            index += 1
        if index < len(rows):
            heapq.heappush(heap, (run, rows[index].steps, rows[index].id, index, rows))


def _read_chunk_rows(
    connection: sa.Connection, id: int, partitions: dict[int, Partition], start: tuple[int, int]
) -> list[Row]:
    row = connection.execute(sa.select(CHUNKS).where(C.id == id)).mappings().one()
    partition = partitions[row[C.partition_id]]
    chunk: Chunk = read_chunk(connection, row)
    if partition.run == start[0]:
        chunk = chunk.take(chunk.steps >= start[1])
    columns = [column.values() for column in chunk.columns]
    batch_metrics = chunk.batch_metrics or [None] * len(chunk)
    return [
        Row(
            id,
            partition,
            steps,
            at / MICROSECONDS,
            dict(zip(partition.names, values, strict=True)),
            extra,
            bool(row["archived"]),
        )
        for id, steps, at, extra, *values in zip(
            chunk.ids.tolist(), chunk.steps.tolist(), chunk.at.tolist(), batch_metrics, *columns, strict=True
        )
    ]


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
