"""When learning rate schedulers step (Trainer spec, section 4)."""

from __future__ import annotations

import enum
from typing import Any


class LRScheduler:
    """A scheduler of torch, and when the training loop steps it. `context.wrap_lr_scheduler()` makes it."""

    class StepMode(enum.Enum):
        """When the training loop steps a scheduler."""

        STEP_EVERY_EPOCH = 1
        STEP_EVERY_BATCH = 2
        MANUAL_STEP = 3
        """Whenever the user's code does."""
        STEP_EVERY_OPTIMIZER_STEP = 4

    def __init__(self, scheduler: Any, step_mode: StepMode, frequency: int = 1) -> None:
        """Keep what is given.

        Args:
            scheduler: A learning rate scheduler of torch.
            step_mode: When to step it.
            frequency: Step only every so many of these.

        Raises:
            TypeError: `step_mode` is no `StepMode`.
        """
        if not isinstance(step_mode, LRScheduler.StepMode):
            raise TypeError(f"step_mode must be an LRScheduler.StepMode, not {step_mode!r}")
        self._scheduler = scheduler
        self._mode = step_mode
        self._frequency = frequency

    def step(self, *args: Any, **kwargs: Any) -> None:
        """Step the scheduler.

        Args:
            *args: Passed on, such as the metric of a `ReduceLROnPlateau`.
            **kwargs: Passed on.
        """
        self._scheduler.step(*args, **kwargs)

    def get_last_lr(self) -> list[Any]:
        """Return the present learning rates, one for each parameter group of the optimizer."""
        rates: list[Any] = self._scheduler.get_last_lr()
        return rates

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the scheduler."""
        state: dict[str, Any] = self._scheduler.state_dict()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state of the scheduler.

        Args:
            state_dict: What `state_dict()` returned.
        """
        self._scheduler.load_state_dict(state_dict)

    def steps_due(self, batch_idx: int, aggregation: int, epoch_length: float) -> int:
        """Return how often the scheduler is to step after a batch.

        Args:
            batch_idx: Index of the batch, from 0 over the life of the trial.
            aggregation: Batches whose gradients are added up for one step of an optimizer.
            epoch_length: Batches of an epoch on one slot; infinite where there are no epochs.
        """
        if self._mode is LRScheduler.StepMode.MANUAL_STEP or (batch_idx + 1) % aggregation != 0:
            return 0
        if self._mode is LRScheduler.StepMode.STEP_EVERY_BATCH:
            return _multiples(batch_idx - aggregation + 1, batch_idx + 1, self._frequency)
        if self._mode is LRScheduler.StepMode.STEP_EVERY_OPTIMIZER_STEP:
            return int((batch_idx + 1) // aggregation % self._frequency == 0)
        now, then = int(batch_idx // epoch_length), int((batch_idx + aggregation) // epoch_length)
        return _multiples(now, then, self._frequency)


def _multiples(start: int, end: int, of: int) -> int:
    """How many i of start..end-1 have (i + 1) divisible."""
    return end // of - start // of
