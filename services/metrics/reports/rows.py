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
from services.metrics.reports.chunks import whole
from services.metrics.reports.strands import Strand, chunk_rows, strands_of
from services.metrics.reports.tables import CHUNKS
from services.metrics.series.chunk import MICROSECONDS, Chunk, unpack_steps

C = CHUNKS.c
HEADER = (C.id, C.strand_id, C.first_steps, C.last_steps)


class Row(msgspec.Struct, frozen=True):
    """One report."""

    id: int
    strand: Strand
    steps: int
    at: float
    values: dict[str, Any]
    batched: Any
    archived: bool

    @property
    def key(self) -> tuple[int, int]:
        """Reports with the same run, steps and group are one row."""
        return self.strand.run, self.steps


def reports(connection: sa.Connection, query: Reports) -> dict[str, Any]:
    """A page of reports in order of trial, run, steps."""
    limit = page_limit(query.limit)
    found, more = page_of(_answers(connection, query), _size, limit)
    return {"rows": found, "more": more}


def _size(row: dict[str, Any]) -> int:
    return sum(memoryview(row[name]).nbytes for name in ("metrics", "batch_metrics") if row[name] is not None)


def _answers(connection: sa.Connection, query: Reports) -> Iterator[dict[str, Any]]:
    """Trial by trial, starting where the previous page ended."""
    for trial_id in sorted(set(query.trial_ids)):
        after = None
        if query.after is not None and trial_id <= query.after[0]:
            if trial_id < query.after[0]:
                continue
            after = query.after[1:]
        strands = _asked(connection, trial_id, query)
        for row in _rows_of(connection, strands, archived=query.archived, after=after):
            yield _answer(row)


def report_window(connection: sa.Connection, query: ReportWindow) -> dict[str, Any]:
    """A range of a trial's reports by index, in order of steps."""
    strands = _asked(connection, query.trial_id, query)
    # Reports that only add keys to another report do not count as reports.
    whole_ones = [strand for strand in strands if not strand.merges]
    live = C.archived.is_(False)
    total = sum(row["reports"] for row in chunk_rows(connection, whole_ones, live, columns=(C.reports,)))
    end = min(query.offset + query.limit, total)
    if query.offset >= end:
        return {"total": total, "rows": []}
    frames = chunk_rows(connection, whole_ones, live, columns=(C.frame,))
    steps = np.sort(np.concatenate([unpack_steps(row["frame"]) for row in frames]), kind="stable")
    first, last = int(steps[query.offset]), int(steps[end - 1])
    found = list(_merging(_parts(connection, strands, [live, *_between(first, last)], (-1, -1))))
    within = [row for row in found if first <= row.steps <= last]
    within.sort(key=lambda row: (row.steps, row.strand.kind == VALIDATION))
    skipped = query.offset - int(np.searchsorted(steps, first, side="left"))
    rows, _ = page_of(map(_answer, within[skipped:]), _size, end - query.offset)
    return {"total": total, "rows": rows}


def _asked(connection: sa.Connection, trial_id: int, query: Reports | ReportWindow) -> list[Strand]:
    found = strands_of(connection, [trial_id], query.group)
    if query.profiled or query.group is not None:
        return found
    return [strand for strand in found if is_training(strand.kind)]


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
    strands = strands_of(connection, [trial_id], group)
    return _rows_of(connection, strands, archived=archived, after=after)


def _rows_of(
    connection: sa.Connection, strands: list[Strand], *, archived: bool, after: tuple[int, int, int] | None
) -> Iterator[Row]:
    begin = (after[0], after[1]) if after else (-1, -1)
    conditions = [] if archived else [C.archived.is_(False)]
    for row in _merging(_parts(connection, strands, conditions, begin)):
        if after is None or (*row.key, row.id) > after:
            yield row


def _merging(parts: Iterable[Row]) -> Iterator[Row]:
    for _, same in groupby(parts, key=lambda row: row.key):
        yield from _merged(list(same))


def _parts(
    connection: sa.Connection, strands: list[Strand], conditions: Sequence[Any], begin: tuple[int, int]
) -> Iterator[Row]:
    """Reports as stored, by run, steps and id, starting at run and steps `begin`."""
    by_id = {strand.id: strand for strand in strands}
    heap: list[Any] = []
    for header in chunk_rows(connection, strands, *conditions, columns=HEADER):
        strand = by_id[header["strand_id"]]
        if (strand.run, header["last_steps"]) >= begin:
            heap.append((strand.run, header["first_steps"], header["id"], 0, None))
    heapq.heapify(heap)
    while heap:
        run, _, id, place, rows = heapq.heappop(heap)
        if rows is None:
            rows = _rows(connection, id, by_id, begin)
        else:
            yield rows[place]
            place += 1
        if place < len(rows):
            heapq.heappush(heap, (run, rows[place].steps, rows[place].id, place, rows))


def _rows(
    connection: sa.Connection, id: int, strands: dict[int, Strand], begin: tuple[int, int]
) -> list[Row]:
    row = connection.execute(sa.select(CHUNKS).where(C.id == id)).mappings().one()
    strand = strands[row["strand_id"]]
    chunk: Chunk = whole(connection, row)
    if strand.run == begin[0]:
        chunk = chunk.take(chunk.steps >= begin[1])
    columns = [column.values() for column in chunk.columns]
    batched = chunk.batched or [None] * len(chunk)
    return [
        Row(
            id,
            strand,
            steps,
            at / MICROSECONDS,
            dict(zip(strand.names, values, strict=True)),
            extra,
            bool(row["archived"]),
        )
        for id, steps, at, extra, *values in zip(
            chunk.ids.tolist(), chunk.steps.tolist(), chunk.at.tolist(), batched, *columns, strict=True
        )
    ]


def _merged(rows: list[Row]) -> Iterable[Row]:
    """Rows of one run and steps. Those that add keys are merged into the rows they add to."""
    if not any(row.strand.merges for row in rows):
        return rows
    found: list[Row] = []
    first: dict[str, int] = {}
    for row in rows:
        kind = row.strand.kind
        if row.strand.merges and kind in first:
            base = found[first[kind]]
            both = row.values | base.values
            batched = base.batched if row.batched is None else row.batched
            found[first[kind]] = msgspec.structs.replace(base, values=both, batched=batched)
        else:
            first.setdefault(kind, len(found))
            found.append(row)
    return found


def _answer(row: Row) -> dict[str, Any]:
    return {
        "id": row.id,
        "trial_id": row.strand.trial_id,
        "run": row.strand.run,
        "group": row.strand.kind,
        "steps_completed": row.steps,
        "at": row.at,
        "metrics": msgspec.Raw(msgspec.json.encode(row.values)),
        "batch_metrics": None if row.batched is None else msgspec.Raw(msgspec.json.encode(row.batched)),
        "archived": row.archived,
    }
