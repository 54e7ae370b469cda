"""Parses `idle_timeout` and `notebook_idle_type`: when a notebook is idle, and for how long it may be."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from det_contracts.problems import invalid

IDLE_TYPES = ("kernels_or_terminals", "kernel_connections", "activity")
UNITS_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
MAX_TIMEOUT_S = 10 * 365 * 86400.0
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:h|ms|m|s))+")
_PART = re.compile(r"(?<![0-9.])([0-9]+(?:\.[0-9]+)?)(h|ms|m|s)")


def idle_timeout_s(config: Mapping[str, Any]) -> float | None:
    """Seconds for which a task may be idle, or None if unlimited. Raises `Refused` (400) naming the field.

    >>> idle_timeout_s({"idle_timeout": "1h30m"})
    5400.0
    """
    timeout = config.get("idle_timeout")
    if timeout is None:
        return None
    if isinstance(timeout, str) and _DURATION.fullmatch(timeout):
        seconds = sum(float(number) * UNITS_S[unit] for number, unit in _PART.findall(timeout))
    elif isinstance(timeout, int | float) and not isinstance(timeout, bool) and math.isfinite(timeout):
        seconds = float(timeout)
    else:
        wrong = str(timeout)[:50]
        raise invalid(f"config.idle_timeout is {wrong!r}: a duration such as 30m or 1h30m is expected")
    if not 0 < seconds <= MAX_TIMEOUT_S:
        raise invalid(f"config.idle_timeout is {timeout}: it must be more than 0 and at most ten years")
    return seconds


def idle_type(config: Mapping[str, Any]) -> str:
    """The kind of activity that keeps a notebook alive. Raises `Refused` (400)."""
    chosen_type = config.get("notebook_idle_type") or IDLE_TYPES[0]
    if chosen_type not in IDLE_TYPES:
        wrong, allowed = str(chosen_type)[:50], ", ".join(IDLE_TYPES)
        raise invalid(f"config.notebook_idle_type is {wrong!r}: one of {allowed} is expected")
    return str(chosen_type)
