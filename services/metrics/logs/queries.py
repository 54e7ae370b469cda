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
    line_count, numbered, last = connection.execute(totals.where(C.task_id == query.task_id)).one()
    chosen = sa.select(C.first_id, C.number, C.lines, C.kinds).where(C.task_id == query.task_id)
    chunks = [
        Chunk(*row[:3], read_kinds(row.kinds)) for row in connection.execute(chosen.order_by(C.last_id))
    ]
    kind_stats = [stats for chunk in chunks for stats in chunk.kind_stats]
    kinds = {stats.kind for stats in kind_stats}
    return {
        "places": sorted({(kind.allocation_id, kind.worker_id) for kind in kinds}),
        "ranks": sorted({kind.rank for kind in kinds}, key=lambda rank: -1 if rank is None else rank),
        "stdtypes": sorted({kind.stdtype for kind in kinds}),
        "sources": sorted({kind.source for kind in kinds}),
        "levels": _counts(kind_stats),
        "lines": int(line_count),
        "last_number": numbered or 0,
        "last_line": last,
        "first_error": min((stats.first_error for stats in kind_stats if stats.first_error), default=None),
        "failing_line": _failing_line(kind_stats),
        "marks": marks(connection, chunks),
    }


def _counts(kind_stats: Iterable[KindStats]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for stats in kind_stats:
        level = stats.kind.level or ""
        counts[level] = counts.get(level, 0) + stats.count
    return counts


def _failing_line(kind_stats: Iterable[KindStats]) -> int | None:
    """The last error of the lowest rank with an error, in the newest run that had any."""
    with_errors = [stats for stats in kind_stats if stats.last_error is not None]
    if not with_errors:
        return None
    newest = newest_failure(with_errors)
    mine = [stats for stats in with_errors if stats.kind.allocation_id == newest]
    # Messages of a launcher or the platform have no rank and say less than those of the rank that failed.
    by_rank = [stats for stats in mine if stats.kind.rank is not None] or mine
    of_task = [stats for stats in by_rank if stats.kind.source == "task"] or by_rank
    lowest = min(stats.kind.rank or 0 for stats in of_task)
    return max(stats.last_error or 0 for stats in of_task if (stats.kind.rank or 0) == lowest)


READS: dict[Any, Callable[[sa.Connection, Any], Any]] = {
    LogPage: log_page,
    LogFields: log_fields,
    LogCause: log_cause,
}
