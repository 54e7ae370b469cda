"""Instants as the master writes them: RFC 3339, UTC, up to nanoseconds (REST spec, section 1)."""

from __future__ import annotations

import re
from datetime import datetime, timezone

_FRACTION = re.compile(r"\.(\d+)")


def parse(text: str) -> datetime:
    """An aware instant in UTC, cut down to microseconds; raises ValueError for anything else."""
    text = _FRACTION.sub(lambda match: "." + match[1][:6].ljust(6, "0"), text.strip())
    if text[-1:] in ("Z", "z"):
        text = text[:-1] + "+00:00"
    instant = datetime.fromisoformat(text)
    return instant.replace(tzinfo=instant.tzinfo or timezone.utc).astimezone(timezone.utc)


def write(instant: datetime) -> str:
    """The instant as the master reads it."""
    return instant.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
