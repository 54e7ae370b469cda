"""Single values as the API writes them."""

from __future__ import annotations

from datetime import UTC, datetime

_LAST = datetime.max.replace(tzinfo=UTC)


def instant(at: float) -> str:
    """A time in RFC 3339, UTC, to the microsecond, of seconds since 1970.

    Whoever writes into the log says when: a script may state a time that no calendar has. One before 1970 is
    shown as the first moment of it, one too late, or none at all, as the last of the year 9999.
    """
    try:
        shown = datetime.fromtimestamp(max(at, 0.0), UTC)
    except (OverflowError, ValueError):
        shown = _LAST
    return shown.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def maybe_instant(at: float | None) -> str | None:
    """A time, or null."""
    return None if at is None else instant(at)


def long(number: int) -> str:
    """A 64-bit integer, which JSON readers would round."""
    return str(number)
