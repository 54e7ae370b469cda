"""What is answered about log lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from det_contracts import subjects
from det_contracts.queries import LogFields, LogPage
from services.kit.database import POSITIONS
from services.metrics.logs.tables import LINES, LINES_PER_BATCH
from services.metrics.paging import page_limit, page_of, streamed
from services.metrics.values import storable


def log_page(connection: sa.Connection, query: LogPage) -> dict[str, Any]:
    """A page of log lines; `through` is the position of LOGS that the tables are complete up to."""
    through = sa.select(POSITIONS.c.position).where(
        POSITIONS.c.owner == "metrics", POSITIONS.c.stream == subjects.LOGS
    )
    # First the position, then no line beyond it: a commit in between must not show a part of what it adds.
    position = connection.execute(through).scalar() or 0
    order = LINES.c.id.desc() if query.descending else LINES.c.id.asc()
    known = LINES.c.id < (position + 1) * LINES_PER_BATCH
    chosen = sa.select(LINES).where(known, *_log_filters(query, connection.dialect.name)).order_by(order)
    limit = page_limit(query.limit)
    rows = streamed(connection, chosen.limit(limit))
    found, more = page_of(rows, lambda row: len(row["text"].encode()), limit)
    return {"lines": [dict(row) for row in found], "more": more, "through": position}


def _log_filters(query: LogPage, dialect: str) -> list[sa.ColumnElement[bool]]:
    columns = LINES.c
    found: list[sa.ColumnElement[bool]] = [columns.task_id == query.task_id]
    if query.after_id:
        found.append(columns.id < query.after_id if query.descending else columns.id > query.after_id)
    lists = {
        columns.allocation_id: query.allocation_ids,
        columns.worker_id: query.worker_ids,
        columns.level: query.levels,
        columns.stdtype: query.stdtypes,
        columns.source: query.sources,
    }
    found += [column.in_(wanted) for column, wanted in lists.items() if wanted]
    if query.ranks:
        named = columns.rank.in_([rank for rank in query.ranks if rank >= 0])
        found.append(sa.or_(named, columns.rank.is_(None)) if -1 in query.ranks else named)
    if query.before_at is not None:
        found.append(columns.at <= query.before_at)
    if query.after_at is not None:
        found.append(columns.at > query.after_at)
    if query.text:
        # Not LIKE: SQLite's takes upper and lower case for the same.
        place = sa.func.instr if dialect == "sqlite" else sa.func.strpos
        found.append(place(columns.text, storable(query.text)) > 0)
    return found


def log_fields(connection: sa.Connection, query: LogFields) -> dict[str, Any]:
    """Where the lines of a task came from."""
    columns = (LINES.c.allocation_id, LINES.c.worker_id, LINES.c.rank, LINES.c.stdtype, LINES.c.source)
    rows = connection.execute(sa.select(*columns).where(LINES.c.task_id == query.task_id).distinct()).all()
    ranks = {row.rank for row in rows}
    return {
        "places": sorted({(row.allocation_id, row.worker_id) for row in rows}),
        "ranks": sorted(ranks, key=lambda rank: -1 if rank is None else rank),
        "stdtypes": sorted({row.stdtype for row in rows}),
        "sources": sorted({row.source for row in rows}),
    }


READS: dict[Any, Callable[[sa.Connection, Any], Any]] = {LogPage: log_page, LogFields: log_fields}
