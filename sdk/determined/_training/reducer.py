"""Combining the values of batches (Trainer spec, sections 7.1 and 7.2)."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from determined.errors import SearcherMetricMissing


class Reducer(enum.Enum):
    """How the values of a metric over all batches are combined: mean, sum, maximum or minimum.

    Example:
        ```python
        def evaluation_reducer(self):
            return {"accuracy": pytorch.Reducer.AVG, "errors": pytorch.Reducer.SUM}
        ```
    """

    AVG = 1
    SUM = 2
    MAX = 3
    MIN = 4


_REDUCE: dict[Reducer, Callable[[Any], Any]] = {
    Reducer.SUM: np.sum,
    Reducer.MAX: np.max,
    Reducer.MIN: np.min,
}


def reduce_metrics(
    reducer: Reducer, metrics: Sequence[Any] | np.ndarray[Any, Any], weights: Sequence[float] | None = None
) -> Any:
    """Reduce all elements of all values to one number. With AVG, values may have different weights.

    The number is one of NumPy, whose `item()` and `tolist()` callbacks of 0.25 call; a `numpy.float64` is a
    float, too, so that it can be written as JSON.
    """
    if reducer is not Reducer.AVG:
        reduced = _REDUCE[reducer](np.array(metrics))
    elif weights is None:
        reduced = np.mean(np.array(metrics))
    else:
        reduced = np.average([np.mean(np.array(value)) for value in metrics], weights=weights)
    return np.float64(reduced) if isinstance(reduced, np.floating) else reduced


def mean_of_numbers(values: Sequence[Any]) -> float | None:
    """Return the mean of all numbers in all values, ignoring None. None if there is no mean."""
    present = [value for value in values if value is not None]
    try:
        # Fast path for the common case of one number per batch, which avoids the cost of arrays.
        if present and all(type(value) is float or getattr(value, "shape", None) == () for value in present):
            return sum(map(float, present)) / len(present)
        parts = [np.asarray(value, dtype=float).ravel() for value in present]
        numbers = np.concatenate(parts) if parts else np.array([])
    except (TypeError, ValueError):
        return None
    return float(np.mean(numbers)) if numbers.size else None


def scalar(metrics: dict[str, Any], name: str) -> float:
    """Return the searcher metric. Raises RuntimeError if it is missing or not a single number."""
    if name not in metrics:
        raise SearcherMetricMissing(
            f"the searcher's metric '{name}' is not among the validation metrics {', '.join(sorted(metrics))}"
        )
    value = metrics[name]
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.item()
    # A bool is an int for Python, but nothing that a search can rank.
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise RuntimeError(f"the searcher's metric '{name}' must be a single number, not {value!r}")
    return float(value)
