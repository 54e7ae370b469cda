"""Pagination of lists (REST spec, section 1)."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts.problems import invalid

NO_ITEMS = -2
EVERYTHING = -1
EXPERIMENTS_LIMIT = 100


class Window(msgspec.Struct, frozen=True):
    """The part the client asked for. A negative offset counts from the end."""

    offset: int = 0
    limit: int = 0
    descending: bool = False


class Span(msgspec.Struct, frozen=True):
    """A slice of a list: from `start`, inclusive, to `end`, exclusive."""

    start: int
    end: int
    total: int
    window: Window

    @property
    def pagination(self) -> dict[str, int]:
        """The part of the answer that describes the slice."""
        return {
            "offset": self.window.offset,
            "limit": self.window.limit,
            "startIndex": self.start,
            "endIndex": self.end,
            "total": self.total,
        }


def span(window: Window, total: int) -> Span:
    """Return the slice for most lists. Raises `Refused` (400) for an invalid offset or limit."""
    start = window.offset + total if window.offset < 0 else window.offset
    if not 0 <= start <= total:
        raise invalid(f"offset out of bounds: {window.offset}, of {total} items")
    if window.limit < EVERYTHING:
        raise invalid(f"limit must not be {window.limit}; 0 means everything")
    end = total if window.limit in (0, EVERYTHING) else min(start + window.limit, total)
    return Span(start, end, total, window)


def experiments_span(window: Window, total: int) -> Span:
    """Return the slice for lists of experiments: 100 by default; an offset out of bounds is clamped."""
    start = window.offset + total if window.offset < 0 else window.offset
    start = min(max(start, 0), total)
    if window.limit < NO_ITEMS:
        raise invalid(f"limit must not be {window.limit}; -1 means everything, -2 no items")
    if window.limit == NO_ITEMS:
        return Span(start, start, total, window)
    end = total if window.limit == EVERYTHING else min(start + (window.limit or EXPERIMENTS_LIMIT), total)
    return Span(start, end, total, window)


def cut(items: list[Any], window: Window) -> tuple[list[Any], dict[str, int]]:
    """Return one page of a complete, ascending list, and its pagination."""
    part = span(window, len(items))
    ordered = items[::-1] if window.descending else items
    return ordered[part.start : part.end], part.pagination
