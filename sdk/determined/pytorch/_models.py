"""Wrapped models: device placement, replication, mixed precision (Trainer spec, 3)."""

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
    """A model trained by several ranks. Attributes it lacks are looked up in the wrapped model."""

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("module"), name)


def replicate(model: nn.Module, device: torch.device) -> nn.Module:
    """Return a DDP replica. A model without trainable parameters is returned unchanged."""
    # DDP refuses such a model.
    if not any(parameter.requires_grad for parameter in model.parameters()):
        return model
    on = [device] if device.type == "cuda" else None
    return Replicated(model, device_ids=on, output_device=device if on else None)


@contextlib.contextmanager
def without_sync(models: list[nn.Module]) -> Iterator[None]:
    """Keep gradients on their rank. The last batch of an aggregation group synchronizes them."""
    with contextlib.ExitStack() as stack:
        for model in models:
            if isinstance(model, DistributedDataParallel):
                stack.enter_context(model.no_sync())
        yield


def autocast_forward(model: nn.Module, device_type: str) -> None:
    """Run the forward pass in mixed precision and return outputs in full precision."""
    forward: Callable[..., Any] = model.forward

    def cast(*args: Any, **kwargs: Any) -> Any:
        with torch.autocast(device_type):
            return _full_precision(forward(*args, **kwargs))

    model.forward = cast


def _full_precision(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.float() if value.dtype in (torch.float16, torch.bfloat16) else value
    if isinstance(value, dict):
        # Keep the class: Transformers outputs are dicts whose entries are also attributes.
        made = copy.copy(value)
        for name, element in value.items():
            made[name] = _full_precision(element)
        return made
    if isinstance(value, list | tuple):
        parts = [_full_precision(element) for element in value]
        # A named tuple takes its fields as separate arguments.
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        same: Any = copy.copy(value)
        for field in dataclasses.fields(value):
            object.__setattr__(same, field.name, _full_precision(getattr(value, field.name)))
        return same
    return value
