"""Formats single values for the API."""

from __future__ import annotations

from datetime import UTC, datetime

_LAST = datetime.max.replace(tzinfo=UTC)


def format_time(at: float) -> str:
    """A time given in seconds since 1970, in RFC 3339, UTC, to the microsecond.

    Scripts may report any number as a time. One before 1970 is shown as the start of 1970; one too large, or
    not a number, as the end of the year 9999.
    """
    try:
        shown = datetime.fromtimestamp(max(at, 0.0), UTC)
    except (OverflowError, ValueError):
        shown = _LAST
    return shown.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def format_optional_time(at: float | None) -> str | None:
    """A time, or null."""
    return None if at is None else format_time(at)


def format_int64(number: int) -> str:
    """A 64-bit integer as a string, because JSON readers would round a number."""
    return str(number)
