"""Limits answers in rows and in bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import sqlalchemy as sa

PAGE_ROWS = 10_000
PAGE_BYTES = 2 * 1024 * 1024
"""Maximum size of an answer, well below the broker's message limit."""
ROW_OVERHEAD_BYTES = 300


def stream_rows(connection: sa.Connection, query: sa.Select[Any]) -> Iterable[Any]:
    """Rows fetched on demand: a page may reach its byte limit long before its row limit."""
    with connection.execute(query.execution_options(yield_per=100)) as result:
        yield from result.mappings()


def page_limit(requested: int) -> int:
    """Number of rows of a page; 0 asks for as many as fit."""
    return min(requested, PAGE_ROWS) if requested > 0 else PAGE_ROWS


def page_of(rows: Iterable[Any], size: Callable[[Any], int], limit: int) -> tuple[list[Any], bool]:
    """As many of `limit` rows as fit into one answer, at least one, and whether there are more."""
    page: list[Any] = []
    total = 0
    for row in rows:
        total += size(row) + ROW_OVERHEAD_BYTES
        if page and (len(page) == limit or total > PAGE_BYTES):
            return page, True
        page.append(row)
    return page, False
