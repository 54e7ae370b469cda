"""Validation: one pass over the validation data (Trainer spec, section 7.2)."""

from __future__ import annotations

import logging
import time
from typing import Any

import torch

from determined._training.reducer import Reducer, reduce_metrics
from determined.core import DistributedContext
from determined.errors import InvalidExperimentException
from determined.pytorch._callback import Callbacks
from determined.pytorch._context import PyTorchTrialContext
from determined.pytorch._trial import PyTorchTrial, evaluates_batches, evaluation_of
from determined.pytorch._window import plain, snapshot

logger = logging.getLogger("determined.pytorch")
Share = tuple[dict[str, Any], int]
"""Metrics reduced on a rank, and the number of its batches."""


class Validation:
    """Runs the validations of a trial."""

    def __init__(
        self, trial: PyTorchTrial, context: PyTorchTrialContext, callbacks: Callbacks, loader: Any
    ) -> None:
        """`loader` yields a new pass on each iteration: this rank's share, or all data on the chief."""
        self._trial = trial
        self._context = context
        self._callbacks = callbacks
        self._loader = loader
        self._distributed: DistributedContext = context.distributed
        self._evaluate_batch = evaluation_of(trial)

    @torch.no_grad()
    def run(self, most_batches: int | None = None) -> dict[str, Any] | None:
        """Return metrics on the chief, None on other ranks. Raises RuntimeError if no rank has any data."""
        context = self._context
        context._reducers.reset()
        for model in context.models:
            model.eval()
        self._callbacks.tell("on_validation_start")
        metrics = self._by_batch(most_batches) if evaluates_batches(self._trial) else self._at_once()
        # On every rank, also on those without metrics: it is a collective.
        extra = context._reducers.reduce_validation(self._distributed.allgather)
        if metrics is not None:
            metrics |= extra
        # Only the chief has the metrics. Most trials have no such callback and are spared a collective.
        if self._callbacks.anybody_hears("on_validation_end"):
            shared = self._distributed.broadcast(metrics)
            self._callbacks.tell("on_validation_end", shared)
        return metrics

    def _at_once(self) -> dict[str, Any] | None:
        if self._distributed.rank != 0:
            return None
        metrics = self._trial.evaluate_full_dataset(self._loader)
        if not isinstance(metrics, dict):
            raise TypeError(f"evaluate_full_dataset() must return a dict, not {type(metrics).__name__}")
        return {name: plain(value) for name, value in metrics.items()}

    def _by_batch(self, most_batches: int | None) -> dict[str, Any] | None:
        self._callbacks.tell("on_validation_epoch_start")
        begun, records, outputs = time.monotonic(), 0, []
        for index, batch in enumerate(self._loader):
            if most_batches is not None and index >= most_batches:
                break
            records += self._trial.get_batch_length(batch)
            outputs.append(self._evaluate(batch, index))
        self._callbacks.tell("on_validation_epoch_end", outputs)
        mine = _reduced(outputs, self._reducers_for(outputs)), len(outputs)
        shares = self._distributed.allgather((mine, records))
        # Every rank checks all counts, so all raise together and none waits for a rank that has failed.
        if not any(share[1] for share, _ in shares):
            raise RuntimeError("the validation data set is empty: its loader gave no batch")
        if self._distributed.rank != 0:
            return None
        _log_speed(sum(count for _, count in shares), time.monotonic() - begun, sum(s[1] for s, _ in shares))
        return self._over_ranks([share for share, _ in shares])

    def _evaluate(self, batch: Any, index: int) -> dict[str, Any]:
        if self._context.experimental._auto_to_device:
            batch = self._context.to_device(batch)
        metrics = self._evaluate_batch(batch, index)
        if not isinstance(metrics, dict):
            raise TypeError(f"evaluate_batch() must return a dict, not {type(metrics).__name__}")
        return {name: plain(snapshot(value)) for name, value in metrics.items()}

    def _reducers_for(self, outputs: list[dict[str, Any]]) -> dict[str, Reducer]:
        if not outputs:
            return {}
        return reducers_by_name(self._trial.evaluation_reducer(), outputs[0].keys())

    def _over_ranks(self, shares: list[Share]) -> dict[str, Any]:
        # A small data set may leave a rank without a batch: it has no metrics and must not count as zeros.
        with_data = [share for share in shares if share[1]]
        first = with_data[0][0]
        if len(with_data) == 1:
            return first
        reducers = reducers_by_name(self._trial.evaluation_reducer(), first.keys())
        weights = [count for _, count in with_data]
        return {
            name: _combined(name, reducer, [metrics[name] for metrics, _ in with_data], weights)
            for name, reducer in reducers.items()
        }


def reducers_by_name(chosen: Any, names: Any) -> dict[str, Reducer]:
    """Return the reducer of each metric.

    Raises InvalidExperimentException if a dict does not match the names.
    """
    if isinstance(chosen, Reducer):
        return dict.fromkeys(names, chosen)
    if not isinstance(chosen, dict) or not all(isinstance(reducer, Reducer) for reducer in chosen.values()):
        raise InvalidExperimentException(f"evaluation_reducer() must give Reducers, not {chosen!r}")
    if chosen.keys() != set(names):
        raise InvalidExperimentException(
            f"evaluation_reducer() names the metrics {sorted(chosen)}, evaluate_batch() gives {sorted(names)}"
        )
    return {name: chosen[name] for name in names}


def _reduced(outputs: list[dict[str, Any]], reducers: dict[str, Reducer]) -> dict[str, Any]:
    for index, metrics in enumerate(outputs):
        if metrics.keys() != outputs[0].keys():
            raise ValueError(
                f"evaluate_batch() must return the same metrics for all batches; batch {index} gave "
                f"{sorted(metrics)}, batch 0 {sorted(outputs[0])}"
            )
    return {name: _combined(name, reducer, [m[name] for m in outputs]) for name, reducer in reducers.items()}


def _combined(name: str, reducer: Reducer, values: list[Any], weights: list[int] | None = None) -> Any:
    try:
        return reduce_metrics(reducer, values, weights)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"evaluate_batch() returned values of the metric '{name}' that Reducer.{reducer.name} cannot "
            f"combine: {error}; return a number, or arrays of the same shape for all batches"
        ) from error


def _log_speed(records: int, seconds: float, batches: int) -> None:
    seconds = max(seconds, 1e-9)
    logger.info(
        "validated: %d records in %.3gs (%.3g records/s), in %d batches (%.3g batches/s)",
        *(records, seconds, records / seconds, batches, batches / seconds),
    )
