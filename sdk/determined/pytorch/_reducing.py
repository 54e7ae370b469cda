"""Support for custom reducers in the contexts of the trainer and of batch processing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from determined.pytorch._metric_reducers import MetricReducer, Reducers, Wrapped, across

if TYPE_CHECKING:
    from determined import core


class _PyTorchReducerContext:
    """Wraps reducers. The trainer resets and reduces them; custom loops call these methods themselves."""

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
        """Register a custom metric. `Trainer` resets and reports it.

        Args:
            reducer: A `MetricReducer`, or a function that returns the metric. The function takes the list of
                all values passed to `update(value)` of the returned reducer, in batch order over all ranks.
            name: Name of the metric. Without a name the reducer must return a dict.
            for_training: Whether to compute the metric in training.
            for_validation: Whether to compute the metric in validation.

        Returns:
            The reducer. Call its `update()` with the values of each batch.

        Raises:
            AssertionError: If it was already registered, or is neither a reducer nor a function.

        Example:
            ```python
            self.worst = context.wrap_reducer(max, name="worst_loss", for_training=False)
            ...
            self.worst.update(loss.item())            # in evaluate_batch()
            ```
        """
        return self._reducers.wrap(reducer, name, for_training, for_validation)

    def reset_reducers(self) -> None:
        """Reset all reducers. For custom training loops; `Trainer` does this itself.

        Example:
            ```python
            context.reset_reducers()    # before each validation of a loop of your own
            ```
        """
        self._reducers.reset()

    def reduce_metrics(self, for_training: bool) -> dict[str, Any]:
        """Return the metrics of all reducers by name. For custom training loops; `Trainer` does this itself.

        All ranks must call it, and all get the metrics.

        Args:
            for_training: True for the training reducers, False for the validation reducers.

        Raises:
            ValueError: If a reducer failed.
            AssertionError: If a named reducer returned a dict, or an unnamed one did not.

        Example:
            ```python
            for batch in validation_loader:
                trial.evaluate_batch(batch)
            print(context.reduce_metrics(for_training=False))
            ```
        """
        chosen = self._reducers.chosen(for_training)
        return self._reducers.reduce(chosen, self.distributed.allgather)

    def run_cross_slot_reduction(
        self, reducables: Sequence[Wrapped], gathered: Sequence[Sequence[Any]]
    ) -> dict[str, Any]:
        """Return the metrics of some reducers, computed from gathered values.

        Args:
            reducables: Registered reducers.
            gathered: For each rank, the return values of `per_slot_reduce()` of these reducers.

        Example:
            ```python
            mine = [one.reducer.per_slot_reduce() for one in reducables]
            metrics = context.run_cross_slot_reduction(reducables, context.distributed.allgather(mine))
            ```
        """
        return across(reducables, gathered)
