"""Wrapped models: on the device, the same on all ranks, under mixed precision if wanted (Trainer spec, 3)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Replicated(DistributedDataParallel):
    """A model that several ranks train; what it lacks itself is looked for in the model."""

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("module"), name)


def replicate(model: nn.Module, device: torch.device) -> nn.Module:
    """A replica under torch's distributed training; a model without anything to train stays as it is."""
    if not any(parameter.requires_grad for parameter in model.parameters()):
        return model
    on = [device] if device.type == "cuda" else None
    return Replicated(model, device_ids=on, output_device=device if on else None)


@contextlib.contextmanager
def without_sync(models: list[nn.Module]) -> Iterator[None]:
    """Gradients stay on their rank: the last batch of an aggregation group brings them together."""
    with contextlib.ExitStack() as stack:
        for model in models:
            if isinstance(model, DistributedDataParallel):
                stack.enter_context(model.no_sync())
        yield


def autocast_forward(model: nn.Module, device_type: str) -> None:
    """Have the forward pass run in mixed precision and give full precision."""
    forward: Callable[..., Any] = model.forward

    def cast(*args: Any, **kwargs: Any) -> Any:
        with torch.autocast(device_type):
            return _full_precision(forward(*args, **kwargs))

    model.forward = cast


def _full_precision(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.float() if value.dtype in (torch.float16, torch.bfloat16) else value
    if isinstance(value, dict):
        return {name: _full_precision(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_full_precision(one) for one in value)
    return value
