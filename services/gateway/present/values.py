"""Single values as the API writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def instant(at: float) -> str:
    """A time in RFC 3339, UTC, to the microsecond."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def maybe_instant(at: float | None) -> str | None:
    """A time, or null."""
    return None if at is None else instant(at)


def long(number: int) -> str:
    """A 64-bit integer, which JSON readers would round."""
    return str(number)
