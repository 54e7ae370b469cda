"""Reduces long series for charts without losing spikes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from services.metrics.series.packing import Flags, Floats, Integers


def thin(steps: Integers, metrics: Iterable[tuple[Floats, Flags]], limit: int) -> Integers:
    """Indexes of about `limit` points of an ordered series; all of them if it is short.

    Each metric is (values, which of them are numbers). The steps are divided into as many equal stretches as
    leave room for the smallest and the largest value of each metric in each stretch. The first and the last
    point are kept as well. Of non-finite values, one per stretch and metric is kept while there is room.
    """
    if len(steps) <= limit:
        return np.arange(len(steps))
    values = list(metrics)
    buckets = max(1, (limit - 2) // (2 * max(1, len(values))))
    first, last = int(steps.min()), int(steps.max())
    bucket = (steps - first) * buckets // (last - first + 1)
    chosen = {0, len(steps) - 1}
    odd: list[int] = []
    for numbers, present in values:
        finite = np.flatnonzero(np.isfinite(numbers) & present)
        for signed in (numbers, -numbers):
            chosen.update(_smallest(bucket[finite], signed[finite], finite))
        others = np.flatnonzero(~np.isfinite(numbers) & present)
        odd += others[np.unique(bucket[others], return_index=True)[1]].tolist()
    chosen.update(odd[: max(0, limit - len(chosen))])
    return np.array(sorted(chosen))


def _smallest(bucket: Integers, values: Floats, indexes: Integers) -> list[int]:
    """The index of the smallest value in each bucket; of equal ones, the first."""
    if not len(indexes):
        return []
    if (np.diff(bucket) < 0).any():
        order = np.argsort(bucket, kind="stable")
        bucket, values, indexes = bucket[order], values[order], indexes[order]
    starts = np.flatnonzero(np.diff(bucket, prepend=bucket[0] - 1))
    lengths = np.diff(np.append(starts, len(bucket)))
    hits = np.flatnonzero(values == np.repeat(np.minimum.reduceat(values, starts), lengths))
    firsts = hits[np.unique(bucket[hits], return_index=True)[1]]
    smallest: list[int] = indexes[firsts].tolist()
    return smallest
