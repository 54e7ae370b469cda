"""Wrapped models: on the device, the same on all ranks, under mixed precision if wanted (Trainer spec, 3)."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
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
        # Of its own class again: outputs of Transformers are dicts whose entries are attributes, too.
        made = copy.copy(value)
        for name, element in value.items():
            made[name] = _full_precision(element)
        return made
    if isinstance(value, list | tuple):
        parts = [_full_precision(element) for element in value]
        # A named tuple takes its fields one by one.
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        same: Any = copy.copy(value)
        for field in dataclasses.fields(value):
            object.__setattr__(same, field.name, _full_precision(getattr(value, field.name)))
        return same
    return value
