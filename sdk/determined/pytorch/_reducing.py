"""Reducers of the user's own, as part of a context: of the trainer's, and of batch processing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from determined.pytorch._metric_reducers import MetricReducer, Reducers, Wrapped, across

if TYPE_CHECKING:
    from determined import core


class _PyTorchReducerContext:
    """Wraps reducers. The trainer resets and reduces them itself; your own loop calls the methods."""

    distributed: core.DistributedContext

    def __init__(self) -> None:
        self._reducers = Reducers()

    def wrap_reducer(
        self,
        reducer: Callable[[list[Any]], Any] | MetricReducer,
        name: str | None = None,
        for_training: bool = True,
        for_validation: bool = True,
    ) -> MetricReducer:
        """Register a metric of your own. `Trainer` resets and reports it.

        Args:
            reducer: A `MetricReducer`; or a function that takes the list of all values that `update(value)`
                of the returned reducer was called with, in the order of batches over all ranks, and returns
                the metric.
            name: Name of the metric. Without it the reducer must return a dict.
            for_training: Whether the metric is one of training.
            for_validation: Whether the metric is one of validation.

        Returns:
            The reducer, whose `update()` is to be called with values of a batch.

        Raises:
            AssertionError: It was registered before, or is neither a reducer nor a function.

        Example:
            ```python
            self.worst = context.wrap_reducer(max, name="worst_loss", for_training=False)
            ...
            self.worst.update(loss.item())            # in evaluate_batch()
            ```
        """
        return self._reducers.wrap(reducer, name, for_training, for_validation)

    def reset_reducers(self) -> None:
        """Reset all reducers. For your own training loops: `Trainer` does it."""
        self._reducers.reset()

    def reduce_metrics(self, for_training: bool) -> dict[str, Any]:
        """Return the metrics of all reducers, by name. For your own training loops: `Trainer` does it.

        Every rank must call it, and every rank gets the metrics.

        Args:
            for_training: True for the reducers of training, False for those of validation.

        Raises:
            ValueError: A reducer failed.
            AssertionError: A reducer with a name returned a dict, or one without a name returned none.
        """
        chosen = self._reducers.chosen(for_training)
        return self._reducers.reduce(chosen, self.distributed.allgather)

    def run_cross_slot_reduction(
        self, reducables: Sequence[Wrapped], gathered: Sequence[Sequence[Any]]
    ) -> dict[str, Any]:
        """Return the metrics of some reducers, of values that were gathered before.

        Args:
            reducables: Registered reducers.
            gathered: For each rank what `per_slot_reduce()` of each of these reducers returned.
        """
        return across(reducables, gathered)
