"""Which part of a list a client gets (REST spec, section 1)."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts.problems import invalid

NO_ITEMS = -2
EVERYTHING = -1
EXPERIMENTS_LIMIT = 100


class Window(msgspec.Struct, frozen=True):
    """What the client asked for; a negative offset counts from the end."""

    offset: int = 0
    limit: int = 0
    descending: bool = False


class Span(msgspec.Struct, frozen=True):
    """A part of a list: from `start`, inclusive, to `end`, exclusive."""

    start: int
    end: int
    total: int
    window: Window

    @property
    def pagination(self) -> dict[str, int]:
        """The part of the answer that says which items these are."""
        return {
            "offset": self.window.offset,
            "limit": self.window.limit,
            "startIndex": self.start,
            "endIndex": self.end,
            "total": self.total,
        }


def span(window: Window, total: int) -> Span:
    """The part of most lists; raises `Refused` (400) for an offset outside and for a strange limit."""
    start = window.offset + total if window.offset < 0 else window.offset
    if not 0 <= start <= total:
        raise invalid(f"offset out of bounds: {window.offset}, of {total} items")
    if window.limit < EVERYTHING:
        raise invalid(f"limit must not be {window.limit}; 0 means everything")
    end = total if window.limit in (0, EVERYTHING) else min(start + window.limit, total)
    return Span(start, end, total, window)


def experiments_span(window: Window, total: int) -> Span:
    """The part of the list of experiments: 100 by default, and an offset outside is brought to the end."""
    start = window.offset + total if window.offset < 0 else window.offset
    start = min(max(start, 0), total)
    if window.limit < NO_ITEMS:
        raise invalid(f"limit must not be {window.limit}; -1 means everything, -2 no items")
    if window.limit == NO_ITEMS:
        return Span(start, start, total, window)
    end = total if window.limit == EVERYTHING else min(start + (window.limit or EXPERIMENTS_LIMIT), total)
    return Span(start, end, total, window)


def cut(items: list[Any], window: Window) -> tuple[list[Any], dict[str, int]]:
    """One page of a list that is whole in memory and ascends, and its pagination."""
    part = span(window, len(items))
    ordered = items[::-1] if window.descending else items
    return ordered[part.start : part.end], part.pagination
