"""Backward passes and optimizer steps: aggregation, clipping, mixed precision (Trainer spec, section 3.2)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from determined.errors import InvalidExperimentException
from determined.pytorch import _models

Clip = Callable[[list[torch.nn.Parameter]], Any]


class Stepping:
    """Steps the optimizers of one process. The loop sets the current batch."""

    def __init__(self, aggregation: int, average: bool) -> None:
        self.aggregation = aggregation
        self.average = average
        self.batch_idx = -1
        self.scaler: Any = None
        self.automatic = False
        """Whether the platform drives the scaler, rather than the script."""
        self.models: list[nn.Module] = []
        self.timed: Callable[[str], Any] = lambda _: contextlib.nullcontext()

    @property
    def ends_group(self) -> bool:
        """Whether optimizers step on this batch."""
        return (self.batch_idx + 1) % self.aggregation == 0

    def backward(
        self,
        loss: torch.Tensor,
        gradient: torch.Tensor | None,
        retain_graph: bool,
        create_graph: bool,
    ) -> None:
        """Accumulate the gradients of a loss. Ranks exchange them only on the last batch of a group."""
        if self.automatic:
            loss = self.scaler.scale(loss)
        options: dict[str, Any] = {"retain_graph": retain_graph, "create_graph": create_graph}
        with self.timed("train_batch.backward"):
            if self.ends_group:
                loss.backward(gradient, **options)  # type: ignore[no-untyped-call]
            else:
                # The ranks need the sum of the group only: exchanging every batch's gradients would cost as
                # much again.
                with _models.without_sync(self.models):
                    loss.backward(gradient, **options)  # type: ignore[no-untyped-call]

    def step(
        self,
        optimizer: torch.optim.Optimizer,
        clip_grads: Clip | None,
        auto_zero_grads: bool,
        scaler: Any,
        average: bool,
    ) -> None:
        """Step if this is the last batch of a group; otherwise do nothing."""
        if self.aggregation > 1 and not auto_zero_grads:
            raise InvalidExperimentException(
                "auto_zero_grads=False cannot be used with gradient aggregation: gradients of one group "
                "would count in the next"
            )
        if not self.ends_group:
            return
        if average and self.aggregation > 1:
            # Before clipping, so that its limit applies to the gradients that are stepped with.
            _divide(optimizer, self.aggregation)
        if clip_grads is not None:
            if self.automatic and scaler is None:
                # The gradients are still multiplied by the scale, which would shift the limit.
                self.scaler.unscale_(optimizer)
            clip_grads(_parameters(optimizer))
        with self.timed("train_batch.sync_optimizers"):
            _step(optimizer, scaler if scaler is not None else self.scaler if self.automatic else None)
        if auto_zero_grads:
            optimizer.zero_grad()

    def finish_batch(self) -> None:
        """Update the platform's own scaler after the last batch of a group."""
        if self.automatic and self.ends_group:
            # Once per group and not in `step()`: several optimizers share the scale.
            self.scaler.update()


def _step(optimizer: torch.optim.Optimizer, scaler: Any) -> None:
    if scaler is None:
        optimizer.step()
    else:
        scaler.step(optimizer)


def _parameters(optimizer: torch.optim.Optimizer) -> list[torch.nn.Parameter]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _divide(optimizer: torch.optim.Optimizer, by: int) -> None:
    for parameter in _parameters(optimizer):
        if parameter.grad is not None:
            parameter.grad.div_(by)
