"""What is told of one metric of a trial without looking at its points."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from services.metrics.values import number


class Summary(msgspec.Struct, frozen=True):
    """Statistics over the values of one metric name; those of text and maps count, and have a last one."""

    count: int = 0
    finite: int = 0
    """Values that are finite numbers; only they go into sum, min, max and mean."""
    sum: float = 0.0
    min: float | None = None
    max: float | None = None
    last: Any = None
    last_steps: int = -1
    numeric: bool = True

    def plain(self) -> dict[str, Any]:
        """As it is shown: `count, sum, min, max, last, mean, type`."""
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


def add(summary: Summary, steps: int, value: Any) -> Summary:
    """The statistics with one more value; the last one is that of the most steps."""
    found = number(value)
    last, last_steps = (value, steps) if steps >= summary.last_steps else (summary.last, summary.last_steps)
    if found is None or not summary.numeric:
        return Summary(summary.count + 1, last=last, last_steps=last_steps, numeric=False)
    told = msgspec.structs.replace(summary, count=summary.count + 1, last=last, last_steps=last_steps)
    if not math.isfinite(found):
        return told
    return msgspec.structs.replace(
        told,
        finite=summary.finite + 1,
        sum=summary.sum + found,
        min=found if summary.min is None else min(summary.min, found),
        max=found if summary.max is None else max(summary.max, found),
    )


def from_values(values: Iterable[tuple[int, Any]]) -> Summary:
    """The statistics of (steps, value) pairs."""
    summary = Summary()
    for steps, value in values:
        summary = add(summary, steps, value)
    return summary
