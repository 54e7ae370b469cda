"""Finds log lines that are too old or too many. Their removal is then decided as an event.

Age is measured by the lines' own times, from their workers' clocks. A clock that is far ahead does not
prevent removal.
"""

from __future__ import annotations

import sqlalchemy as sa

from services.metrics.logs.chunk import SECOND, read_columns
from services.metrics.logs.tables import CHUNKS, LINES_PER_BATCH

C = CHUNKS.c
AHEAD_S = 86_400.0
"""How far a clock may be ahead of ours, in seconds."""


def too_old(connection: sa.Connection, before: float, now: float) -> int:
    """The position of LOGS up to which every line is older than `before` (seconds since the epoch)."""
    oldest, latest = round(before * SECOND), round((now + AHEAD_S) * SECOND)
    whole = sa.and_(C.first_at >= oldest, C.last_at <= latest)
    first = connection.execute(sa.select(sa.func.min(C.first_id)).where(whole)).scalar()
    split = sa.select(C.columns, C.lines).where(C.last_at >= oldest, C.first_at <= latest, ~whole)
    for row in connection.execute(split if first is None else split.where(C.first_id < first)):
        columns = read_columns(row.columns, row.lines)
        young = columns.ids[(columns.at >= oldest) & (columns.at <= latest)]
        first = min([int(id) for id in young[:1]] + ([] if first is None else [first]), default=None)
    if first is None:
        return _end(connection)
    return int(first) // LINES_PER_BATCH - 1


def too_many(connection: sa.Connection, most: int) -> int:
    """The position of LOGS up to which lines must go so that the rest takes at most `most` stored bytes."""
    if (connection.execute(sa.select(sa.func.sum(C.stored))).scalar() or 0) <= most:
        return 0
    kept = 0
    newest_first = sa.select(C.last_id, C.stored).order_by(C.last_id.desc())
    with connection.execute(newest_first.execution_options(yield_per=1000)) as rows:
        for row in rows:
            kept += row.stored
            if kept > most:
                return int(row.last_id) // LINES_PER_BATCH
    return 0


def _end(connection: sa.Connection) -> int:
    last = connection.execute(sa.select(sa.func.max(C.last_id))).scalar()
    return 0 if last is None else int(last) // LINES_PER_BATCH
