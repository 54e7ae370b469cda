"""Reducers of the user's own, as part of a context: of the trainer's, and of batch processing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from determined.pytorch._metric_reducers import MetricReducer, Reducers, Wrapped, across

if TYPE_CHECKING:
    from determined import core


class _PyTorchReducerContext:
    """Wraps reducers. The trainer resets and reduces them itself; a loop of one's own calls the methods."""

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
        """Have a metric of one's own; a function becomes a reducer with `update(value)`."""
        return self._reducers.wrap(reducer, name, for_training, for_validation)

    def reset_reducers(self) -> None:
        """Have all reducers forget what they gathered."""
        self._reducers.reset()

    def reduce_metrics(self, for_training: bool) -> dict[str, Any]:
        """The metrics of all reducers for training, or for validation; every rank calls, and gets them."""
        chosen = self._reducers.chosen(for_training)
        return self._reducers.reduce(chosen, self.distributed.allgather)

    def run_cross_slot_reduction(
        self, reducables: Sequence[Wrapped], gathered: Sequence[Sequence[Any]]
    ) -> dict[str, Any]:
        """The metrics of some reducers, of what each slot gathered for them."""
        return across(reducables, gathered)
