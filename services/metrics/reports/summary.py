"""Statistics of one metric of a trial, available without reading its points."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from services.metrics.values import as_number

LAST_BYTES = 1024
"""Size as JSON up to which a last value is kept. All of a group's statistics are written with each report."""
LAST_CHARACTERS = 500
"""A longer text is kept up to here. Its points have all of it."""
LARGEST = sys.float_info.max
"""Sums are limited to this, so that they stay finite."""
replace = msgspec.structs.replace


class Summary(msgspec.Struct, frozen=True, array_like=True):
    """Statistics of one metric's values. Text and maps are only counted, and have a last value."""

    count: int = 0
    finite: int = 0
    """Number of finite values; only these are included in sum, min, max and mean."""
    sum: float = 0.0
    min: float | None = None
    max: float | None = None
    last: Any = None
    last_steps: int = -1
    numeric: bool = True

    def to_public(self) -> dict[str, Any]:
        """The public form: `count, sum, min, max, last, mean, type`."""
        if not self.numeric:
            return {"count": self.count, "last": self.last, "type": "other"}
        mean = self.sum / self.finite if self.finite else None
        return {
            "count": self.count,
            "sum": self.sum,
            "min": self.min,
            "max": self.max,
            "last": self.last,
            "mean": mean,
            "type": "number",
        }


def extend(summary: Summary, steps: Sequence[int], values: Sequence[Any]) -> Summary:
    """Add the values of some reports, in the order in which they were made."""
    total = _sum(values) if summary.numeric else None
    if total is None:
        for at, value in zip(steps, values, strict=True):
            summary = add(summary, at, value)
        return summary
    low, high, newest = min(values), max(values), max(steps)
    index = len(steps) - 1
    while steps[index] != newest:
        index -= 1
    later = newest >= summary.last_steps
    return Summary(
        count=summary.count + len(values),
        finite=summary.finite + len(values),
        sum=max(-LARGEST, min(LARGEST, summary.sum + total)),
        min=low if summary.min is None or low < summary.min else summary.min,
        max=high if summary.max is None or high > summary.max else summary.max,
        last=values[index] if later else summary.last,
        last_steps=newest if later else summary.last_steps,
    )


def _sum(values: Sequence[Any]) -> float | None:
    """The sum if it and all values are finite floating-point numbers, as they mostly are; otherwise None."""
    if set(map(type, values)) != {float}:
        return None
    try:
        total = math.fsum(values)
    except (OverflowError, ValueError):
        return None
    return total if math.isfinite(total) else None


def add(summary: Summary, steps: int, value: Any) -> Summary:
    """Add one value. The last value is the one with the highest steps."""
    number = as_number(value)
    later = steps >= summary.last_steps
    last, last_steps = (_short(value), steps) if later else (summary.last, summary.last_steps)
    count = summary.count + 1
    if number is None or not summary.numeric:
        return Summary(count=count, last=last, last_steps=last_steps, numeric=False)
    if not math.isfinite(number):
        return replace(summary, count=count, last=last, last_steps=last_steps)
    return Summary(
        count=count,
        finite=summary.finite + 1,
        sum=max(-LARGEST, min(LARGEST, summary.sum + number)),
        min=number if summary.min is None or number < summary.min else summary.min,
        max=number if summary.max is None or number > summary.max else summary.max,
        last=last,
        last_steps=last_steps,
    )


def _short(value: Any) -> Any:
    """The value, the start of a long text, or None for something else that is too large."""
    if type(value) is float or len(msgspec.json.encode(value)) <= LAST_BYTES:
        return value
    return f"{value[:LAST_CHARACTERS]}…" if isinstance(value, str) else None
