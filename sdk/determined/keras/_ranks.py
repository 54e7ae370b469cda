"""Averages gradients over all ranks for any optimizer, using torch distributed."""

from __future__ import annotations

from typing import Any

import keras

from determined.errors import InvalidExperimentException


def check_backend() -> None:
    """Raise InvalidExperimentException if the backend cannot train on several slots."""
    if keras.backend.backend() != "torch":
        raise InvalidExperimentException(
            f"the Keras backend '{keras.backend.backend()}' trains on one slot per trial; several slots need "
            "the backend torch: set environment.environment_variables: [KERAS_BACKEND=torch]"
        )


def average_gradients(model: Any, optimizers: list[Any], size: int) -> None:
    """Make every optimizer apply the mean gradients of all ranks."""
    outer = getattr(model, "optimizer", None)
    if not any(_is_or_holds(outer, candidate) for candidate in optimizers):
        raise InvalidExperimentException(
            "the model was compiled with an optimizer that was not wrapped: on several slots pass "
            "context.wrap_optimizer(optimizer) to compile()"
        )
    # A loss-scaling optimizer decides alike on all ranks only if it sees the mean gradients itself.
    others = [candidate for candidate in optimizers if not _is_or_holds(outer, candidate)]
    for optimizer in (outer, *others):
        _patch(optimizer, size)


def _is_or_holds(outer: Any, optimizer: Any) -> bool:
    return outer is optimizer or getattr(outer, "inner_optimizer", None) is optimizer


def _patch(optimizer: Any, size: int) -> None:
    apply = optimizer.apply

    def apply_mean(grads: Any, trainable_variables: Any = None) -> Any:
        return apply(_mean(list(grads), size), trainable_variables)

    # Patch the instance and not the class, because saving and loading depend on the class.
    object.__setattr__(optimizer, "apply", apply_mean)


def _mean(gradients: list[Any], size: int) -> list[Any]:
    """Return the mean over ranks, with one exchange for all gradients of the same type and device."""
    import torch

    means = list(gradients)
    kinds: dict[Any, list[int]] = {}
    for place, gradient in enumerate(gradients):
        if gradient is not None:
            kinds.setdefault((gradient.dtype, gradient.device), []).append(place)
    for places in kinds.values():
        # Exchanged one by one, each of the many small gradients would cost a round trip.
        flat = torch.cat([gradients[place].detach().reshape(-1) for place in places])
        torch.distributed.all_reduce(flat)
        parts = torch.split(flat.div_(size), [gradients[place].numel() for place in places])
        for place, part in zip(places, parts, strict=True):
            means[place] = part.view_as(gradients[place])
    return means
