"""Separates Lightning's training and validation metrics, and reports each once."""

from __future__ import annotations

import logging
from typing import Any

import lightning.pytorch as pl

from determined import core

logger = logging.getLogger("determined.lightning")


class Metrics:
    """Reports metrics. Lightning keeps the latest value of all metrics in one table without their origin.

    A metric that changes during a validation counts as a validation metric from then on.
    """

    def __init__(self, core_context: core.Context) -> None:
        self._train = core_context.train
        self._chief = core_context.distributed.rank == 0
        self._before: dict[str, Any] = {}
        self._of_validation: set[str] = set()
        self._reported: tuple[int, set[str]] = (-1, set())
        """Steps of the latest training report, and the metrics reported at it."""
        self._newest: dict[str, float] = {}

    def before_validation(self, trainer: pl.Trainer) -> None:
        """Record the current values at the start of a validation."""
        self._before = _values(trainer)

    def after_validation(self, trainer: pl.Trainer) -> dict[str, float]:
        """Return the validation's metrics. Metrics that changed count as validation metrics from now on."""
        values, before = _values(trainer), self._before
        self._of_validation |= {name for name in values if name not in before or values[name] != before[name]}
        return {name: value for name, value in values.items() if name in self._of_validation}

    def validated(self, trainer: pl.Trainer, batches: int) -> None:
        """Report the metrics of a validation."""
        metrics = self.after_validation(trainer)
        self._newest.update(metrics)
        if metrics and self._chief:
            self._train.report_validation_metrics(batches, metrics)

    def train(self, trainer: pl.Trainer, batches: int) -> None:
        """Report training metrics, each at most once per number of batches."""
        metrics = {k: v for k, v in _values(trainer).items() if k not in self._of_validation}
        self._newest.update(metrics)
        steps, names_reported = self._reported
        reported = names_reported if steps == batches else set()
        new = {name: value for name, value in metrics.items() if name not in reported}
        self._reported = batches, reported | new.keys()
        if new and self._chief:
            self._train.report_training_metrics(batches, new)

    def value(self, name: str) -> float:
        """Return the latest value of a metric. Raises KeyError listing the known metrics."""
        if name not in self._newest:
            names = ", ".join(sorted(self._newest)) or "none"
            raise KeyError(
                f"the searcher's metric '{name}' was never logged; there are: {names}. "
                f"Log it in validation_step: self.log('{name}', value)"
            )
        return self._newest[name]


def _values(trainer: pl.Trainer) -> dict[str, float]:
    return {name: float(value) for name, value in trainer.callback_metrics.items() if value.numel() == 1}
