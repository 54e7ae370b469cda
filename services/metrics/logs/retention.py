"""Finds log lines that are too old or too many. Their removal is then decided as an event.

Age is measured by the lines' own times, from their workers' clocks. A clock that is far ahead does not
prevent removal.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from det_contracts.queries import StoredLines
from services.metrics.logs.chunk import MICROSECONDS, read_columns
from services.metrics.logs.tables import CHUNKS, LINES_PER_BATCH

C = CHUNKS.c
MAX_CLOCK_LEAD_S = 86_400.0
"""How far a clock may be ahead of ours, in seconds."""


def stored_lines(connection: sa.Connection, query: StoredLines) -> dict[str, int | None]:
    """How much is stored, and from which position of LOGS on lines are young."""
    oldest, latest = round(query.before * MICROSECONDS), round((query.now + MAX_CLOCK_LEAD_S) * MICROSECONDS)
    return {
        "bytes": _stored_bytes(connection),
        "first_young": _first_young(connection, oldest, latest),
        "last": _last_position(connection),
    }


def expired_through(stored: dict[str, Any]) -> int:
    """The position of LOGS up to which every line is old, by the answer to `StoredLines`."""
    young: int | None = stored["first_young"]
    return int(stored["last"]) if young is None else young - 1


def _first_young(connection: sa.Connection, oldest: int, latest: int) -> int | None:
    # Most chunks are either young or old as a whole; only those in between are unpacked.
    all_young = sa.and_(C.first_at >= oldest, C.last_at <= latest)
    first = connection.execute(sa.select(sa.func.min(C.first_id)).where(all_young)).scalar()
    partly_young = sa.select(C.columns, C.lines).where(C.last_at >= oldest, C.first_at <= latest, ~all_young)
    for row in connection.execute(partly_young if first is None else partly_young.where(C.first_id < first)):
        columns = read_columns(row.columns, row.lines)
        young = columns.ids[(columns.at >= oldest) & (columns.at <= latest)]
        first = min([int(id) for id in young[:1]] + ([] if first is None else [first]), default=None)
    return None if first is None else int(first) // LINES_PER_BATCH


def _stored_bytes(connection: sa.Connection) -> int:
    return int(connection.execute(sa.select(sa.func.sum(C.stored))).scalar() or 0)


def excess_through(connection: sa.Connection, max_bytes: int) -> int:
    """The position of LOGS up to which lines must go so that the rest takes at most `max_bytes`."""
    if _stored_bytes(connection) <= max_bytes:
        return 0
    kept_bytes = 0
    newest_first = sa.select(C.last_id, C.stored).order_by(C.last_id.desc())
    with connection.execute(newest_first.execution_options(yield_per=1000)) as rows:
        for row in rows:
            kept_bytes += row.stored
            if kept_bytes > max_bytes:
                return int(row.last_id) // LINES_PER_BATCH
    return 0


def _last_position(connection: sa.Connection) -> int:
    last = connection.execute(sa.select(sa.func.max(C.last_id))).scalar()
    return 0 if last is None else int(last) // LINES_PER_BATCH
