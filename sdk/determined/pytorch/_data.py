"""Batches of any shape: their length and their device (Trainer spec, section 5)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

logger = logging.getLogger("determined.pytorch")

TorchData = dict[str, torch.Tensor] | Sequence[torch.Tensor] | torch.Tensor
"""What a loader gives: a tensor, several of them in order, or by name."""


def data_length(data: Any) -> int:
    """Return the number of records in a batch: the length of its first tensor or array.

    Args:
        data: A tensor, an array, or lists, tuples and dicts of them.

    Raises:
        ValueError: A container is empty.
        TypeError: The batch is of another type.
    """
    if isinstance(data, np.ndarray | torch.Tensor):
        return len(data)
    if isinstance(data, dict | list | tuple):
        if len(data) == 0:
            raise ValueError("a batch is empty: it has no length")
        return data_length(next(iter(data.values())) if isinstance(data, dict) else data[0])
    raise TypeError(f"the length of a batch of type {type(data).__name__} is not known")


def to_device(data: Any, device: torch.device, warned_types: set[type] | None = None) -> Any:
    """Return a batch on a device.

    Args:
        data: A tensor, a NumPy array, or lists, tuples and dicts of them, nested as you like. Anything else
            with a method `to` is asked to move itself; what cannot be moved stays, with a warning.
        device: The device to move to.
        warned_types: Types that were warned about before; new ones are added. Without it there is a warning
            at every call.
    """
    if isinstance(data, torch.Tensor):
        return data if data.device == device else data.to(device, non_blocking=True)
    if isinstance(data, dict):
        return {name: to_device(value, device, warned_types) for name, value in data.items()}
    if isinstance(data, list):
        return [to_device(value, device, warned_types) for value in data]
    if isinstance(data, tuple):
        moved = [to_device(value, device, warned_types) for value in data]
        # A named tuple takes its fields one by one.
        return type(data)(*moved) if hasattr(data, "_fields") else tuple(moved)
    if isinstance(data, np.ndarray) and data.dtype.kind in "fciub":
        return torch.from_numpy(data).to(device)
    if callable(getattr(data, "to", None)):
        return data.to(device)
    _warn_once(data, warned_types)
    return data


def _warn_once(data: Any, warned_types: set[type] | None) -> None:
    if warned_types is not None and type(data) in warned_types:
        return
    logger.warning("was not able to move data item of type '%s' to device", type(data).__name__)
    if warned_types is not None:
        warned_types.add(type(data))
