"""Learning rate schedulers and when they step (Trainer spec, section 4)."""

from __future__ import annotations

import enum
from typing import Any

from determined import _arguments


class LRScheduler:
    """A torch scheduler and when the training loop steps it. Created by `context.wrap_lr_scheduler()`.

    Example:
        ```python
        scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=1, gamma=0.9)
        mode = pytorch.LRScheduler.StepMode.STEP_EVERY_EPOCH
        self.scheduler = context.wrap_lr_scheduler(scheduler, mode)
        ```
    """

    class StepMode(enum.Enum):
        """When the training loop steps a scheduler.

        Example:
            ```python
            # Every 100 batches:
            mode = pytorch.LRScheduler.StepMode.STEP_EVERY_BATCH
            context.wrap_lr_scheduler(scheduler, mode, frequency=100)
            ```
        """

        STEP_EVERY_EPOCH = 1
        STEP_EVERY_BATCH = 2
        MANUAL_STEP = 3
        """Stepped by the user's code."""
        STEP_EVERY_OPTIMIZER_STEP = 4

    def __init__(self, scheduler: Any, step_mode: StepMode, frequency: int = 1) -> None:
        """Create a wrapper around a scheduler.

        Args:
            scheduler: A torch learning rate scheduler.
            step_mode: When to step it.
            frequency: Step only on every this many of these.

        Raises:
            TypeError: If `step_mode` is not a `StepMode`, or `frequency` no integer.
            ValueError: If `frequency` is below 1.
        """
        if not isinstance(step_mode, LRScheduler.StepMode):
            raise TypeError(f"step_mode must be an LRScheduler.StepMode, not {step_mode!r}")
        _arguments.integer("frequency", frequency, at_least=1)
        self._scheduler = scheduler
        self._mode = step_mode
        self._frequency = frequency

    def step(self, *args: Any, **kwargs: Any) -> None:
        """Step the scheduler.

        Args:
            *args: Passed to the scheduler, such as the metric of a `ReduceLROnPlateau`.
            **kwargs: Passed to the scheduler.

        Example:
            ```python
            # With LRScheduler.StepMode.MANUAL_STEP, in the trial's `train_batch`:
            self.scheduler.step()
            ```
        """
        self._scheduler.step(*args, **kwargs)

    def get_last_lr(self) -> list[Any]:
        """Return the current learning rates, one per parameter group of the optimizer.

        Returns:
            A list of floats.

        Example:
            ```python
            return {"loss": loss, "lr": self.scheduler.get_last_lr()[0]}
            ```
        """
        rates: list[Any] = self._scheduler.get_last_lr()
        return rates

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the scheduler.

        Example:
            ```python
            torch.save(scheduler.state_dict(), "scheduler.pt")
            ```
        """
        state: dict[str, Any] = self._scheduler.state_dict()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state of the scheduler.

        Args:
            state_dict: A state returned by `state_dict()`.

        Example:
            ```python
            scheduler.load_state_dict(torch.load("scheduler.pt"))
            ```
        """
        self._scheduler.load_state_dict(state_dict)

    def steps_due(self, batch_idx: int, aggregation: int, epoch_length: float) -> int:
        """Return how many times the scheduler steps after a batch.

        Args:
            batch_idx: Index of the batch, from 0 over the life of the trial.
            aggregation: Number of batches whose gradients are accumulated for one optimizer step.
            epoch_length: Number of batches in an epoch on one slot; infinite if there are no epochs.

        Returns:
            0 if it does not step.

        Example:
            ```python
            for _ in range(scheduler.steps_due(batch_idx, aggregation=1, epoch_length=len(loader))):
                scheduler.step()
            ```
        """
        if self._mode is LRScheduler.StepMode.MANUAL_STEP or (batch_idx + 1) % aggregation != 0:
            return 0
        if self._mode is LRScheduler.StepMode.STEP_EVERY_BATCH:
            # With aggregated gradients, the scheduler steps with the optimizer, for all batches since its
            # last step.
            return _multiples(batch_idx - aggregation + 1, batch_idx + 1, self._frequency)
        if self._mode is LRScheduler.StepMode.STEP_EVERY_OPTIMIZER_STEP:
            return int((batch_idx + 1) // aggregation % self._frequency == 0)
        now, then = int(batch_idx // epoch_length), int((batch_idx + aggregation) // epoch_length)
        return _multiples(now, then, self._frequency)


def _multiples(start: int, end: int, of: int) -> int:
    """Return how many i in start..end-1 have (i + 1) divisible by `of`."""
    return end // of - start // of
