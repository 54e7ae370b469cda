"""Writes metrics as events: the writer interface, and a writer of whole reports."""

from __future__ import annotations

import abc
import numbers
from collections.abc import Sequence
from typing import Any


class MetricWriter(abc.ABC):
    """Writes numbers to the event files of this process.

    Example:
        ```python
        class Printing(MetricWriter):
            def add_scalar(self, name, value, step):
                print(name, value, step)

            def reset(self):
                sys.stdout.flush()
        ```
    """

    @abc.abstractmethod
    def add_scalar(self, name: str, value: Any, step: int) -> None:
        """Write a number at a step."""

    @abc.abstractmethod
    def reset(self) -> None:
        """Flush everything to the files. The next write starts a new file."""


class BatchMetricWriter:
    """Writes reports with a writer of single numbers. Values that are not numbers are skipped.

    Example:
        ```python
        writer = BatchMetricWriter(TorchWriter())
        writer.on_train_step_end(100, {"loss": 0.25})           # Determined/loss at step 100
        writer.on_validation_step_end(100, {"accuracy": 0.91})  # Determined/val_accuracy at step 100
        ```
    """

    def __init__(self, writer: MetricWriter) -> None:
        self.writer = writer

    def on_train_step_end(
        self,
        steps_completed: int,
        metrics: dict[str, Any],
        batch_metrics: Sequence[dict[str, Any]] | None = None,
    ) -> None:
        """Write each metric at each of its batches; metrics without batch values at the end."""
        first = steps_completed - len(batch_metrics or ())
        for place, batch in enumerate(batch_metrics or ()):
            self._write(batch, "Determined/{}", first + place)
        whole = set(batch_metrics[0]) if batch_metrics else set()
        self._write({n: v for n, v in metrics.items() if n not in whole}, "Determined/{}", steps_completed)
        self.writer.reset()

    def on_validation_step_end(self, steps_completed: int, metrics: dict[str, Any]) -> None:
        """Write each metric under a name that starts with `val`."""
        for name, value in metrics.items():
            shape = "Determined/{}" if name.startswith("val") else "Determined/val_{}"
            self._write({name: value}, shape, steps_completed)
        self.writer.reset()

    def _write(self, metrics: dict[str, Any], shape: str, step: int) -> None:
        for name, value in metrics.items():
            if getattr(value, "ndim", None) == 0:
                value = value.item()
            if isinstance(value, numbers.Number) and not isinstance(value, complex):
                self.writer.add_scalar(shape.format(name), value, step)
