"""Turns cells into the buckets of a chart."""

from __future__ import annotations

from typing import Any

import numpy as np

from services.metrics.series.cells import Cells, reduce
from services.metrics.series.packing import Flags, Floats, Integers


def bucket(
    cells: Cells, x: Floats, first: float | None, last: float | None, width: int
) -> dict[str, Any] | None:
    """Summarise cells, in order of steps, for a chart. `x` has one value per cell: that of its last point.

    The range of x from `first` to `last`, or all of it, is divided into `width` equal parts. If x goes back
    and forth, neighbouring points are grouped instead, the same number in each. Cells outside the range or
    without an x are left out. Returns None if nothing remains.
    """
    within = _within(x, first, last)
    if not within.all():
        cells, x = cells.take(within), x[within]
    if not len(cells):
        return None
    monotone = bool((np.diff(x) >= 0).all())
    counted = {
        "count": int(cells.count.sum()),
        "non_finite": int((cells.count - cells.finite).sum()),
        "monotone": monotone,
    }
    # Fewer points than pixels: the chart shows each of them.
    if int(cells.count.sum()) <= width:
        answer = {"raw": True, "x": x.tolist(), "batches": cells.steps.tolist(), "last": cells.last.tolist()}
        return counted | answer
    even = np.arange(len(x)) * width // len(x)
    bucket_of_cell = _bucket_indexes(x, first, last, width) if monotone else even
    starts = np.flatnonzero(np.diff(bucket_of_cell, prepend=bucket_of_cell[0] - 1))
    ends = np.append(starts[1:], len(x)) - 1
    return counted | {"raw": False, "x": x[ends].tolist()} | _to_answer(reduce(cells, starts))


def _within(x: Floats, first: float | None, last: float | None) -> Flags:
    within = np.isfinite(x)
    if first is not None:
        within &= x >= first
    if last is not None:
        within &= x <= last
    return within


def _bucket_indexes(x: Floats, first: float | None, last: float | None, width: int) -> Integers:
    low = float(x[0]) if first is None else first
    high = float(x[-1]) if last is None else last
    with np.errstate(over="ignore", invalid="ignore"):
        share = np.nan_to_num((x - low) / ((high - low) or 1.0))
    return np.clip((share * width).astype(np.int64), 0, width - 1)


def _to_answer(buckets: Cells) -> dict[str, list[Any]]:
    has_mean = (buckets.finite > 0) & np.isfinite(buckets.sum)
    mean = np.where(has_mean, buckets.sum / np.maximum(buckets.finite, 1), np.nan)
    return {
        "batches": buckets.steps.tolist(),
        "last": buckets.last.tolist(),
        "min": buckets.low.tolist(),
        "max": buckets.high.tolist(),
        "mean": mean.tolist(),
        "counts": buckets.count.tolist(),
        "gaps": (buckets.count - buckets.finite).tolist(),
    }
