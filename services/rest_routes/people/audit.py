"""The audit log (our addition): filtered pages and a full export."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.responses import Response

from det_contracts.problems import invalid
from services.catalogue import audit
from services.catalogue.api_values import format_time
from services.catalogue.audit import Filter
from services.catalogue.filter_text import check_length
from services.people import users
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.streaming import Stream
from services.rest_requests.tables import csv_parts
from services.rest_routes.present.answers import media_schema
from services.web.query import FromQuery, Instant, Integer, Users
from services.web.routes import Routes

router = Routes()
MAX_ENTRIES = 1000
COLUMNS = ("position", "time", "username", "event", "about", "what", "reason")
MEDIA_TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/x-ndjson"}


class AuditQuery(Users):
    """Filters of the audit log."""

    event: str = ""
    about: str = ""
    since: Instant = None
    until: Instant = None


class AuditPageQuery(AuditQuery):
    """GET /master/audit"""

    limit: Integer = 100
    before: Integer = 0


class AuditExportQuery(AuditQuery):
    """GET /master/audit/export"""

    format: str = "csv"


@router.get("/master/audit", ("read_log", "cluster"))
async def entries(call: Authenticated, query: FromQuery[AuditPageQuery]) -> Response:
    """Commands and what they changed, newest first.

    Pass the last position as `before` to get the next page.
    """
    limit = query.limit
    if not 0 < limit <= MAX_ENTRIES:
        raise invalid(f"limit must be 1 to {MAX_ENTRIES}, not {limit}")
    before, entry_filter = query.before or None, _filter(call, query)
    rows = await call.catalogue.read(
        # One more than asked for, to know whether there are more.
        lambda connection: audit.rows_before(connection, entry_filter, limit + 1, before)
    )
    return call.answer({"entries": [_shown(row) for row in rows[:limit]], "more": len(rows) > limit})


@router.get("/master/audit/export", ("read_log", "cluster"), **media_schema(*MEDIA_TYPES.values()))
async def export(call: Authenticated, query: FromQuery[AuditExportQuery]) -> Response:
    """All matching entries, oldest first, as CSV or as one JSON object per line."""
    name = query.format
    if name not in MEDIA_TYPES:
        raise invalid(f"format must be one of {', '.join(MEDIA_TYPES)}, not '{name}'")
    rows = _all_pages(call, _filter(call, query))
    headers = {"Content-Disposition": f'attachment; filename="audit.{name}"'}
    return Stream(
        csv_parts(COLUMNS, _cells(rows)) if name == "csv" else _lines(rows),
        call=call,
        media_type=MEDIA_TYPES[name],
        headers=headers,
    )


def _filter(call: UserCall, query: AuditQuery) -> Filter:
    names = users.names_of(call.catalogue.state, query.users, query.user_ids)
    return Filter(
        users=tuple(names),
        event=check_length("event", query.event),
        about=query.about,
        since=query.since,
        until=query.until,
    )


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {column: format_time(row["at"]) if column == "time" else row[column] for column in COLUMNS}


async def _all_pages(call: UserCall, entry_filter: Filter) -> AsyncIterator[list[dict[str, Any]]]:
    page = await _next_entries(call, entry_filter, 0)
    while page:
        yield [_shown(row) for row in page]
        # An export may take minutes, and stops when the session has been closed.
        call.session()
        page = await _next_entries(call, entry_filter, page[-1]["position"])


async def _next_entries(call: UserCall, entry_filter: Filter, after: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = await call.catalogue.read(
        lambda connection: audit.rows_after(connection, entry_filter, MAX_ENTRIES, after)
    )
    return rows


async def _cells(pages: AsyncIterator[list[dict[str, Any]]]) -> AsyncIterator[list[list[Any]]]:
    async for page in pages:
        yield [[row[column] for column in COLUMNS] for row in page]


async def _lines(pages: AsyncIterator[list[dict[str, Any]]]) -> AsyncIterator[bytes]:
    async for page in pages:
        yield b"".join(msgspec.json.encode(row) + b"\n" for row in page)
