"""Custom metric reducers, for metrics that are not a mean over batches (Trainer spec, section 7.3)."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from determined import _arguments

AllGather = Callable[[Any], list[Any]]


class MetricReducer(abc.ABC):
    """A metric that is not a mean over batches. Subclass it, and register an instance.

    Register it with `context.wrap_reducer()`. Each rank collects values in its own instance. At the end of a
    training window or validation, the values of all ranks are combined into one metric.

    Example:
        ```python
        class F1(pytorch.MetricReducer):
            def __init__(self):
                self.reset()

            def reset(self):
                self.hits = self.misses = 0

            def update(self, hits, misses):                 # called by evaluate_batch()
                self.hits += hits
                self.misses += misses

            def per_slot_reduce(self):
                return self.hits, self.misses

            def cross_slot_reduce(self, per_slot_metrics):
                hits, misses = map(sum, zip(*per_slot_metrics))
                return 2 * hits / (2 * hits + misses)
        ```
    """

    @abc.abstractmethod
    def reset(self) -> None:
        """Clear all values. Called at the start of each training window and each validation.

        Example:
            ```python
            def reset(self):
                self.correct = self.count = 0
            ```
        """

    @abc.abstractmethod
    def per_slot_reduce(self) -> Any:
        """Return the values collected on this rank. They must be picklable.

        Returns:
            Any picklable value, which all ranks receive in `cross_slot_reduce`.

        Example:
            ```python
            def per_slot_reduce(self):
                return self.correct, self.count
            ```
        """

    @abc.abstractmethod
    def cross_slot_reduce(self, per_slot_metrics: list[Any]) -> Any:
        """Combine the values of all ranks into the metric. Called on every rank.

        Args:
            per_slot_metrics: The return values of `per_slot_reduce()` on each rank, in rank order.

        Returns:
            The metric, or a dict of metrics by name if the reducer was registered without a name.

        Example:
            ```python
            def cross_slot_reduce(self, per_slot_metrics):
                correct, count = map(sum, zip(*per_slot_metrics))
                return correct / count
            ```
        """


class SimpleMetricReducer(MetricReducer):
    """Collects values and passes all of them to a function, in batch order."""

    def __init__(self, function: Callable[[list[Any]], Any]) -> None:
        self._function = function
        self._values: list[Any] = []

    def update(self, value: Any) -> None:
        """Add a value of a batch."""
        self._values.append(value)

    def reset(self) -> None:
        self._values = []

    def per_slot_reduce(self) -> Any:
        return self._values

    def cross_slot_reduce(self, per_slot_metrics: list[Any]) -> Any:
        missing = object()
        # Batches are dealt out in turn, so this is the order in which one process would have seen them.
        rounds = itertools.zip_longest(*per_slot_metrics, fillvalue=missing)
        return self._function([value for row in rounds for value in row if value is not missing])


class Wrapped(msgspec.Struct, frozen=True):
    """A reducer and its use."""

    reducer: MetricReducer
    name: str | None
    for_training: bool
    for_validation: bool


class Reducers:
    """All reducers of a trial."""

    def __init__(self) -> None:
        self._wrapped: list[Wrapped] = []

    def wrap(self, reducer: Any, name: str | None, for_training: bool, for_validation: bool) -> MetricReducer:
        """Register a reducer or function.

        Raises AssertionError if it is neither, or was already registered.
        """
        if not isinstance(reducer, MetricReducer):
            if not callable(reducer):
                raise AssertionError(f"a reducer must be a MetricReducer or a function, not {reducer!r}")
            reducer = SimpleMetricReducer(reducer)
        # By identity: two reducers of the same kind and with equal values are two metrics.
        if any(wrapped.reducer is reducer for wrapped in self._wrapped):
            raise AssertionError("this reducer was wrapped before")
        if name is not None:
            _arguments.text("name", name, "the name of a metric (str), or None")
        self._wrapped.append(Wrapped(reducer, name, for_training, for_validation))
        metric_reducer: MetricReducer = reducer
        return metric_reducer

    def reset(self) -> None:
        """Reset all reducers, when a new window or validation starts."""
        for wrapped in self._wrapped:
            _call(wrapped, "reset", wrapped.reducer.reset)

    def chosen(self, for_training: bool) -> list[Wrapped]:
        """Return the reducers for training or those for validation."""
        return [
            wrapped
            for wrapped in self._wrapped
            if (wrapped.for_training if for_training else wrapped.for_validation)
        ]

    def reduce_training(self, all_gather: AllGather) -> dict[str, Any]:
        """Return the metrics of the window. All slots must call this."""
        return self.reduce(self.chosen(for_training=True), all_gather)

    def reduce_validation(self, all_gather: AllGather) -> dict[str, Any]:
        """Return the metrics of the validation. All slots must call this."""
        return self.reduce(self.chosen(for_training=False), all_gather)

    def reduce(self, chosen: Sequence[Wrapped], all_gather: AllGather) -> dict[str, Any]:
        """Return the metrics of the given reducers. All slots must call this."""
        if not chosen:
            return {}
        mine = [_call(wrapped, "per_slot_reduce", wrapped.reducer.per_slot_reduce) for wrapped in chosen]
        return across(chosen, all_gather(mine))


def across(chosen: Sequence[Wrapped], gathered: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Compute the metrics from the values of each slot, in the order of the reducers."""
    metrics: dict[str, Any] = {}
    for wrapped, parts in zip(chosen, zip(*gathered, strict=True), strict=True):
        value = _call(wrapped, "cross_slot_reduce", wrapped.reducer.cross_slot_reduce, list(parts))
        metrics |= _named(wrapped, value)
    return metrics


def _named(wrapped: Wrapped, value: Any) -> dict[str, Any]:
    if wrapped.name is None:
        if not isinstance(value, dict):
            raise AssertionError(
                f"{_kind(wrapped)} was wrapped with name=None but it did not return a dict: {value!r}"
            )
        return value
    if isinstance(value, dict):
        raise AssertionError(
            f"{_kind(wrapped)} was wrapped with name set but it returned a dict anyway: {value!r}"
        )
    return {wrapped.name: value}


def _kind(wrapped: Wrapped) -> str:
    return type(wrapped.reducer).__name__


def _call(wrapped: Wrapped, method: str, function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception as error:
        raise ValueError(
            f"{_kind(wrapped)} of metric '{wrapped.name}' failed in {method}(): {error}"
        ) from error
