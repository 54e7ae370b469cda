"""Units of training: batches and epochs (Trainer spec, section 9.1)."""

from __future__ import annotations

from collections.abc import Container
from typing import Any


class TrainUnit:
    """A period or a length: `Batch` or `Epoch`.

    Example:
        ```python
        trainer.fit(
            max_length=pytorch.Epoch(10),
            reporting_period=pytorch.Batch(100),
            checkpoint_period=pytorch.Epoch([1, 5, 10]),    # after these epochs
        )
        ```
    """

    def __init__(self, value: int | Container[int]) -> None:
        """Create a length or period in this unit.

        Args:
            value: A number or a container of numbers, such as a set or a range. As a period, a number means
                its multiples (every step if 0), and a container means the numbers it contains.

        Raises:
            TypeError: If it is neither.
            ValueError: If it is negative.
        """
        if isinstance(value, bool | str | bytes | dict) or not (
            isinstance(value, int) or hasattr(value, "__contains__")
        ):
            expected = f"of pytorch.{type(self).__name__} must be an integer or a container of integers"
            raise TypeError(f"the value {expected}, not {value!r}")
        if isinstance(value, int) and value < 0:
            raise ValueError(f"the value of pytorch.{type(self).__name__} must be at least 0, not {value}")
        self.value = value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.value == getattr(other, "value", None)

    def __hash__(self) -> int:
        return hash((type(self), repr(self.value)))

    def reached(self, count: int) -> bool:
        """Return whether there is a boundary at a count.

        Args:
            count: Number of batches or epochs from the start of the trial.

        Example:
            ```python
            pytorch.Epoch(2).reached(4)         # True: every second epoch
            pytorch.Batch([10, 50]).reached(20) # False
            ```
        """
        if isinstance(self.value, int):
            return self.value < 1 or count % self.value == 0
        return count in self.value

    def should_stop(self, step_num: int) -> bool:
        """Return whether a custom loop is at a boundary.

        Args:
            step_num: Number of steps so far. A boundary never lies before the first step.

        Example:
            ```python
            period = pytorch.Batch(100)
            for step in range(1000):
                if period.should_stop(step):    # at 100, 200 and so on
                    validate()
            ```
        """
        return self.reached(step_num) and not (
            step_num == 0 and isinstance(self.value, int) and self.value > 0
        )

    def length(self) -> int:
        """Return the number.

        Raises:
            TypeError: If the value is a container.
            ValueError: If it is 0.

        Example:
            ```python
            pytorch.Batch(100).length    # 100
            ```
        """
        if not isinstance(self.value, int):
            raise TypeError(f"max_length must hold a number, not the container {self.value!r}")
        if self.value < 1:
            raise ValueError(f"max_length must be at least 1, not {self!r}: nothing would be trained")
        return self.value


class Batch(TrainUnit):
    """A number of batches on one slot, such as `pytorch.Batch(100)`.

    Example:
        ```python
        trainer.fit(max_length=pytorch.Batch(1000), validation_period=pytorch.Batch(100))
        ```
    """


class Epoch(TrainUnit):
    """A number of passes over the training data, such as `pytorch.Epoch(1)`.

    Reached at a pass's last batch.

    Example:
        ```python
        trainer.fit(max_length=pytorch.Epoch(10), validation_period=pytorch.Epoch(1))
        ```
    """


NEVER = Batch(frozenset())
"""A period without boundaries."""


def configured(period: Any, global_batch_size: int | None) -> TrainUnit:
    """Convert a period of the experiment configuration: `{batches|records|epochs: n}`. Below 1 means never.

    Raises ValueError for any other form, and for records without a batch size.
    """
    if not isinstance(period, dict) or len(period) != 1:
        raise ValueError(f"a period is one of batches, records and epochs with its number, not {period!r}")
    ((unit, count),) = period.items()
    if unit not in ("batches", "records", "epochs"):
        raise ValueError(f"a period is one of batches, records and epochs, not {unit}")
    if count < 1:
        return NEVER
    return Epoch(count) if unit == "epochs" else Batch(to_batches(unit, count, global_batch_size))


def to_batches(unit: str, count: int, global_batch_size: int | None) -> int:
    """Convert a number of batches or records to batches; at least 1."""
    if unit == "batches":
        return count
    if not global_batch_size:
        raise ValueError("records can be counted only with the hyperparameter global_batch_size")
    return max(count // global_batch_size, 1)
