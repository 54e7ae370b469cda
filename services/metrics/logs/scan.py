"""Finds a task's lines chunk by chunk, skipping chunks that cannot match; stops after a limited effort."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import sqlalchemy as sa

from det_contracts.queries import LogPage
from services.metrics.logs.chunk import (
    MICROSECONDS,
    Columns,
    Kind,
    KindStats,
    read_columns,
    read_kinds,
    read_text,
)
from services.metrics.logs.line_search import Finder, finder
from services.metrics.logs.tables import CHUNKS
from services.metrics.paging import PAGE_BYTES, ROW_OVERHEAD_BYTES

C = CHUNKS.c
WORK_BYTES = 128 * 1024 * 1024
"""Maximum amount of text examined for one answer, in bytes."""
WORK_S = 0.5
"""Maximum time for one answer, in seconds. At least one chunk is always examined."""
INDEX = (C.first_id, C.last_id, C.number, C.lines, C.first_at, C.last_at, C.kinds)
BODY = sa.select(C.columns, C.texts).where(C.first_id == sa.bindparam("id"))
COLUMNS = sa.select(C.columns).where(C.first_id == sa.bindparam("id"))
Line = dict[str, Any]
_encode = msgspec.json.Encoder().encode


class Scan:
    """One scan over a task's chunks. Read `lines` to the end, then `more` and `cursor`."""

    def __init__(self, connection: sa.Connection, query: LogPage, limit: int, below: int) -> None:
        """Scans only lines with ids below `below`. Raises `Refused` for an invalid pattern."""
        self.more = False
        self.cursor = query.after_id
        """The scan is complete up to this id, in the requested order."""
        self.number = 0
        """The number of the line at the cursor; 0 before any was examined."""
        self._connection = connection
        self._query = query
        self._limit = limit
        self._before_id = below
        self._finder: Finder = finder(query.text, query.regex)
        self._has_pattern = bool(query.text or query.regex)
        self._time_range = (_micros(query.before_at, math.inf), _micros(query.after_at, -math.inf))
        self._scanned_bytes, self._started_at = 0, time.monotonic()

    def lines(self) -> Iterator[Line]:
        """The lines of the page."""
        line_count, size = 0, 0
        for row in self._chunks():
            for line in self._lines_of_chunk(row):
                # Measured as JSON, where a control character takes six bytes.
                size += len(_encode(line["text"])) + ROW_OVERHEAD_BYTES
                if line_count == self._limit or (line_count and size > PAGE_BYTES):
                    self.more = True
                    return
                line_count += 1
                self.cursor, self.number = line["id"], line["number"]
                yield line
            # Past the whole chunk, matches or not: a search that finds nothing must get on as well.
            self.cursor, self.number = self._end_of_chunk(row)
            if self._is_budget_spent():
                self.more = True
                return

    def _end_of_chunk(self, row: Any) -> tuple[int, int]:
        """Id and number of the line at which a chunk ends for this scan, in the requested order."""
        if self._query.descending:
            return row.first_id, row.number + 1
        if row.last_id < self._before_id:
            return row.last_id, row.number + row.lines
        # Only the newest chunk can also hold lines that came too late for this scan.
        packed = self._connection.execute(COLUMNS, {"id": row.first_id}).scalar_one()
        ids = read_columns(packed, row.lines).ids
        return self._before_id - 1, row.number + int(np.searchsorted(ids, self._before_id))

    def _is_budget_spent(self) -> bool:
        return self._scanned_bytes > WORK_BYTES or time.monotonic() - self._started_at > WORK_S

    def _chunks(self) -> Iterator[Any]:
        """The index entries of chunks that may contain a matching line, in order."""
        query = self._query
        # Eight kilobytes per chunk, which only a search needs.
        chosen = sa.select(*INDEX, *((C.trigrams,) if self._has_pattern else ()))
        chosen = chosen.where(C.task_id == query.task_id, C.first_id < self._before_id)
        if query.after_id:
            later, earlier = C.last_id > query.after_id, C.first_id < query.after_id
            chosen = chosen.where(earlier if query.descending else later)
        if query.from_number:
            near = C.number < query.from_number
            chosen = chosen.where(near if query.descending else C.number + C.lines >= query.from_number)
        order = C.last_id.desc() if query.descending else C.last_id.asc()
        paged = chosen.order_by(order).execution_options(yield_per=50)
        with self._connection.execute(paged) as rows:
            for row in rows:
                if self._overlaps_time_range(row.first_at, row.last_at) and self._can_match(row):
                    yield row

    def _overlaps_time_range(self, first: int, last: int) -> bool:
        before, after = self._time_range
        return first <= before and last > after

    def _can_match(self, row: Any) -> bool:
        return not self._has_pattern or self._finder.can_match_chunk(row.trigrams)

    def _lines_of_chunk(self, row: Any) -> Iterator[Line]:
        kinds = read_kinds(row.kinds)
        wanted = np.array([_matches_filters(self._query, stats.kind) for stats in kinds], bool)
        if not wanted.any():
            return
        packed = self._connection.execute(BODY, {"id": row.first_id}).one()
        text = self._text(packed.texts) if self._has_pattern else b""
        if not self._finder.can_match_text(text):
            return
        columns = read_columns(packed.columns, row.lines)
        fits = wanted[columns.kind] & self._within_limits(columns, row.number)
        if fits.any():
            yield from self._to_lines(row, kinds, columns, fits, text or self._text(packed.texts))

    def _text(self, packed: bytes) -> bytes:
        text = read_text(packed)
        self._scanned_bytes += len(text)
        return text

    def _within_limits(self, columns: Columns, number: int) -> Any:
        query, ids = self._query, columns.ids
        fits = ids < self._before_id
        if query.after_id:
            fits &= (ids < query.after_id) if query.descending else (ids > query.after_id)
        if query.from_number:
            numbers = np.arange(len(ids)) + number + 1
            fits &= (numbers <= query.from_number) if query.descending else (numbers >= query.from_number)
        before, after = self._time_range
        return fits & (columns.at <= before) & (columns.at > after)

    def _to_lines(
        self, row: Any, kinds: list[KindStats], columns: Columns, fits: Any, text: bytes
    ) -> Iterator[Line]:
        ends = np.append(np.flatnonzero(np.frombuffer(text, np.uint8) == 0), len(text))
        if self._has_pattern:
            fits = fits & self._finder.matching_lines(text, ends)
        indexes = np.flatnonzero(fits)
        for index in indexes[::-1] if self._query.descending else indexes:
            start = int(ends[index - 1]) + 1 if index else 0
            yield {
                "id": int(columns.ids[index]),
                "number": row.number + int(index) + 1,
                "task_id": self._query.task_id,
                **_kind_fields(kinds[columns.kind[index]].kind),
                "at": int(columns.at[index]) / MICROSECONDS,
                "text": text[start : int(ends[index])].decode(),
            }


def _micros(at: float | None, otherwise: float) -> float:
    return otherwise if at is None else round(at * MICROSECONDS)


def _kind_fields(kind: Kind) -> Line:
    return {name: getattr(kind, name) for name in Kind.__struct_fields__}


def _matches_filters(query: LogPage, kind: Kind) -> bool:
    filters = (
        (query.allocation_ids, kind.allocation_id),
        (query.worker_ids, kind.worker_id),
        (query.ranks, -1 if kind.rank is None else kind.rank),
        (query.levels, kind.level),
        (query.stdtypes, kind.stdtype),
        (query.sources, kind.source),
    )
    return all(not wanted or value in wanted for wanted, value in filters)
