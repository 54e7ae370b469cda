"""Queries about log lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import sqlalchemy as sa

from det_contracts import subjects
from det_contracts.queries import LogCause, LogFields, LogPage
from services.kit.database import POSITIONS
from services.metrics.logs.cause import log_cause, newest_failure
from services.metrics.logs.chunk import KindStats, read_kinds
from services.metrics.logs.marks import Chunk, marks
from services.metrics.logs.scan import Scan
from services.metrics.logs.tables import CHUNKS, LINES_PER_BATCH
from services.metrics.paging import page_limit

C = CHUNKS.c


def log_page(connection: sa.Connection, query: LogPage) -> dict[str, Any]:
    """A page of log lines. `through` is the position of LOGS up to which the tables are complete."""
    # A database belongs to one shard, so there is one row.
    through = sa.select(POSITIONS.c.position).where(POSITIONS.c.stream == subjects.LOGS)
    position = connection.execute(through).scalar() or 0
    # Bounded by what the position says, so that a follower who goes on behind `through` neither misses a line
    # nor sees one twice.
    scan = Scan(connection, query, page_limit(query.limit), (position + 1) * LINES_PER_BATCH)
    lines = list(scan.lines())
    scan_state = {"more": scan.more, "cursor": scan.cursor, "number": scan.number}
    return {"lines": lines, "through": position, **scan_state}


def log_fields(connection: sa.Connection, query: LogFields) -> dict[str, Any]:
    """The values of a task's line attributes with counts, and the lines that show a failure."""
    end = sa.func.max(C.number + C.lines), sa.func.max(C.last_id)
    totals = sa.select(sa.func.coalesce(sa.func.sum(C.lines), 0), *end)
    kept, numbered, last = connection.execute(totals.where(C.task_id == query.task_id)).one()
    chosen = sa.select(C.first_id, C.number, C.lines, C.kinds).where(C.task_id == query.task_id)
    chunks = [
        Chunk(*row[:3], read_kinds(row.kinds)) for row in connection.execute(chosen.order_by(C.last_id))
    ]
    kind_stats = [one for chunk in chunks for one in chunk.kind_stats]
    kinds = {one.kind for one in kind_stats}
    return {
        "places": sorted({(kind.allocation_id, kind.worker_id) for kind in kinds}),
        "ranks": sorted({kind.rank for kind in kinds}, key=lambda rank: -1 if rank is None else rank),
        "stdtypes": sorted({kind.stdtype for kind in kinds}),
        "sources": sorted({kind.source for kind in kinds}),
        "levels": _counts(kind_stats),
        "lines": int(kept),
        "last_number": numbered or 0,
        "last_line": last,
        "first_error": min((one.first_error for one in kind_stats if one.first_error), default=None),
        "failing_line": _failing_line(kind_stats),
        "marks": marks(connection, chunks),
    }


def _counts(kind_stats: Iterable[KindStats]) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in kind_stats:
        level = one.kind.level or ""
        found[level] = found.get(level, 0) + one.count
    return found


def _failing_line(kind_stats: Iterable[KindStats]) -> int | None:
    """The last error of the lowest rank with an error, in the newest run that had any."""
    with_errors = [one for one in kind_stats if one.last_error is not None]
    if not with_errors:
        return None
    newest = newest_failure(with_errors)
    mine = [one for one in with_errors if one.kind.allocation_id == newest]
    # Messages of a launcher or the platform have no rank and say less than those of the rank that failed.
    by_rank = [one for one in mine if one.kind.rank is not None] or mine
    of_task = [one for one in by_rank if one.kind.source == "task"] or by_rank
    lowest = min(one.kind.rank or 0 for one in of_task)
    return max(one.last_error or 0 for one in of_task if (one.kind.rank or 0) == lowest)


READS: dict[Any, Callable[[sa.Connection, Any], Any]] = {
    LogPage: log_page,
    LogFields: log_fields,
    LogCause: log_cause,
}
