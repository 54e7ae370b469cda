"""Timestamps in the master's format: RFC 3339, UTC, up to nanoseconds (REST spec, section 1)."""

from __future__ import annotations

import re
from datetime import datetime, timezone

_FRACTION = re.compile(r"\.(\d+)")


def parse(text: str) -> datetime:
    """Parse a timestamp to an aware UTC datetime, truncated to microseconds. Raises ValueError otherwise."""
    text = _FRACTION.sub(lambda match: "." + match[1][:6].ljust(6, "0"), text.strip())
    if text[-1:] in ("Z", "z"):
        text = text[:-1] + "+00:00"
    instant = datetime.fromisoformat(text)
    return instant.replace(tzinfo=instant.tzinfo or timezone.utc).astimezone(timezone.utc)


def write(instant: datetime) -> str:
    """Format a timestamp for the master."""
    return instant.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
