"""How training is measured: in batches or in epochs (Trainer spec, section 9.1)."""

from __future__ import annotations

from collections.abc import Container
from typing import Any


class TrainUnit:
    """A period or a length. A number is reached at its multiples, a container at what it contains."""

    def __init__(self, value: int | Container[int]) -> None:
        """A number below 1 is reached every time. TypeError for what is neither."""
        if isinstance(value, bool) or not (isinstance(value, int) or hasattr(value, "__contains__")):
            raise TypeError(
                f"{type(self).__name__} takes a whole number, or a container of such, not {value!r}"
            )
        self.value = value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.value == getattr(other, "value", None)

    def __hash__(self) -> int:
        return hash((type(self), repr(self.value)))

    def reached(self, count: int) -> bool:
        """Whether a boundary lies at `count`, counted from the beginning of the trial."""
        if isinstance(self.value, int):
            return self.value < 1 or count % self.value == 0
        return count in self.value

    def should_stop(self, step_num: int) -> bool:
        """Whether a loop of one's own has a boundary after `step_num` steps; none before the first."""
        return self.reached(step_num) and not (
            step_num == 0 and isinstance(self.value, int) and self.value > 0
        )

    def length(self) -> int:
        """The number; TypeError for a container, which is no length."""
        if not isinstance(self.value, int):
            raise TypeError(f"max_length must hold a number, not the container {self.value!r}")
        return self.value


class Batch(TrainUnit):
    """Counted in batches on one slot."""


class Epoch(TrainUnit):
    """Counted in passes over the training data; reached at the last batch of one."""


NEVER = Batch(frozenset())
"""No boundary at all."""


def configured(period: Any, global_batch_size: int | None) -> TrainUnit:
    """A period of the experiment configuration: `{batches|records|epochs: n}`; below 1 is never.

    ValueError for another shape, and for records without a batch size.
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
    """A number of batches, or of records as batches; at least 1."""
    if unit == "batches":
        return count
    if not global_batch_size:
        raise ValueError("records can be counted only with the hyperparameter global_batch_size")
    return max(count // global_batch_size, 1)
