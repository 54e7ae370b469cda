"""Combines the metrics of a trial's calls over all reporting ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from determined._training.reducer import mean_of_numbers
from determined.core import DistributedContext
from determined.errors import InvalidExperimentException
from determined.pytorch._window import plain, snapshot

Calls = list[dict[str, Any]]


def detached(returned: Any, hook: str, before: Calls) -> dict[str, Any]:
    """Return the metrics of one call, without gradients.

    Raises:
        InvalidExperimentException: If they are not a dict, or the names differ from earlier calls.
    """
    if not isinstance(returned, dict):
        raise InvalidExperimentException(
            f"{hook}() must return a dict of metrics, not {type(returned).__name__}"
        )
    if before and before[0].keys() != returned.keys():
        raise InvalidExperimentException(
            f"{hook}() must return the same metrics each time: {sorted(returned)} after {sorted(before[0])}"
        )
    return {name: plain(snapshot(value)) for name, value in returned.items()}


def of_all_ranks(mine: Calls | None, distributed: DistributedContext, average: bool) -> Calls:
    """Return the metrics of each call: the mean over reporting ranks, or the first one's. Same on all ranks.

    Raises:
        InvalidExperimentException: If ranks report metrics of different names.
    """
    each = [calls for calls in distributed.allgather(mine) if calls is not None]
    names = {tuple(sorted(calls[0])) for calls in each if calls}
    if len(names) > 1:
        raise InvalidExperimentException(f"ranks report metrics of different names: {sorted(names)}")
    if not each or not average:
        return each[0] if each else []
    shortest = min(len(calls) for calls in each)
    return [_mean([calls[at] for calls in each]) for at in range(shortest)]


def mean_of_calls(mine: Calls | None, distributed: DistributedContext) -> dict[str, Any]:
    """Return the mean over all calls of all reporting ranks; the same on all ranks."""
    each = [calls for calls in distributed.allgather(mine) if calls]
    names = {tuple(sorted(calls[0])) for calls in each}
    if len(names) > 1:
        raise InvalidExperimentException(f"ranks report metrics of different names: {sorted(names)}")
    if not each:
        raise RuntimeError("the validation data set is empty: no rank had a batch")
    return {name: mean_of_numbers([call[name] for calls in each for call in calls]) for name in each[0][0]}


def averages(calls: Calls) -> dict[str, Any]:
    """Return the mean of each metric over the calls of a window."""
    return {name: mean_of_numbers([call[name] for call in calls]) for name in (calls[0] if calls else {})}


def _mean(values: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: _mean_of([metrics[name] for metrics in values]) for name in values[0]}


def _mean_of(values: list[Any]) -> Any:
    numbers = [value for value in values if value is not None]
    try:
        return float(np.mean(np.array(numbers, dtype=float))) if numbers else None
    except (TypeError, ValueError):
        return numbers[0]
