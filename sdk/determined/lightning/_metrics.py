"""Which of Lightning's metrics are of the training and which of a validation, and reporting each once."""

from __future__ import annotations

import logging
from typing import Any

import lightning.pytorch as pl

from determined import core

logger = logging.getLogger("determined.lightning")


class Metrics:
    """Lightning keeps the newest value of every metric in one table, whatever it is of.

    What changes while the Trainer validates is of the validation, and stays so.
    """

    def __init__(self, core_context: core.Context) -> None:
        self._train = core_context.train
        self._chief = core_context.distributed.rank == 0
        self._before: dict[str, Any] = {}
        self._of_validation: set[str] = set()
        self._reported: tuple[int, set[str]] = (-1, set())
        """The newest steps at which the training was reported, and which metrics."""
        self._newest: dict[str, float] = {}

    def before_validation(self, trainer: pl.Trainer) -> None:
        """A validation begins."""
        self._before = _values(trainer)

    def after_validation(self, trainer: pl.Trainer) -> dict[str, float]:
        """What it found; metrics that have changed are of validations from now on."""
        values, before = _values(trainer), self._before
        self._of_validation |= {name for name in values if name not in before or values[name] != before[name]}
        return {name: value for name, value in values.items() if name in self._of_validation}

    def validated(self, trainer: pl.Trainer, batches: int) -> None:
        """Report what a validation found."""
        metrics = self.after_validation(trainer)
        self._newest.update(metrics)
        if metrics and self._chief:
            self._train.report_validation_metrics(batches, metrics)

    def train(self, trainer: pl.Trainer, batches: int) -> None:
        """Report the training, each metric once for each number of batches."""
        metrics = {k: v for k, v in _values(trainer).items() if k not in self._of_validation}
        self._newest.update(metrics)
        steps, names_reported = self._reported
        reported = names_reported if steps == batches else set()
        new = {name: value for name, value in metrics.items() if name not in reported}
        self._reported = batches, reported | new.keys()
        if new and self._chief:
            self._train.report_training_metrics(batches, new)

    def value(self, name: str) -> float:
        """The newest value of a metric; raises KeyError that says which there are."""
        if name not in self._newest:
            names = ", ".join(sorted(self._newest)) or "none"
            raise KeyError(
                f"the searcher's metric '{name}' was never logged; there are: {names}. "
                f"Log it in validation_step: self.log('{name}', value)"
            )
        return self._newest[name]


def _values(trainer: pl.Trainer) -> dict[str, float]:
    return {name: float(value) for name, value in trainer.callback_metrics.items() if value.numel() == 1}
