"""Formats single values for tables (client spec, section 3)."""

from __future__ import annotations

import json
from typing import Any

from determined.transport import instant

_UNITS = ("B", "KB", "MB", "GB", "TB")


def state(name: str) -> str:
    """Format a state without its prefix."""
    return name.removeprefix("STATE_")


def when(text: str | None) -> str | None:
    """Format a time as `2023-08-01 12:00:00+0000`."""
    return instant.parse(text).strftime("%Y-%m-%d %H:%M:%S%z") if text else None


def percent(share: float | None) -> str | None:
    """Format a fraction from 0 to 1 as `43.2%`. Returns None for None."""
    return None if share is None else f"{share * 100:.1f}%"


def size(count: float) -> str:
    """Format bytes as `8.6KB`, in steps of 1024."""
    for unit in _UNITS[:-1]:
        if count < 1024:
            return f"{count:.1f}{unit}"
        count /= 1024
    return f"{count:.1f}{_UNITS[-1]}"


def compact(value: Any) -> str | None:
    """Format a structure on one line. None and empty ones become an empty cell."""
    return json.dumps(value, sort_keys=True) if value else None


def listed(values: list[str] | None) -> str:
    """Join strings with commas."""
    return ", ".join(values or [])
