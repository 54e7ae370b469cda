"""Length and device of arbitrarily structured batches (Trainer spec, section 5)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

logger = logging.getLogger("determined.pytorch")

TorchData = dict[str, torch.Tensor] | Sequence[torch.Tensor] | torch.Tensor
"""A batch: a tensor, or several tensors in order or by name."""


def data_length(data: Any) -> int:
    """Return the number of records in a batch: the length of its first tensor or array.

    Args:
        data: A tensor, an array, or lists, tuples and dicts of them.

    Returns:
        A number of records.

    Raises:
        ValueError: If a container is empty.
        TypeError: If the batch has another type.

    Example:
        ```python
        assert pytorch.data_length({"images": torch.zeros(32, 1, 28, 28)}) == 32
        ```
    """
    if isinstance(data, np.ndarray | torch.Tensor):
        return len(data)
    if isinstance(data, dict | list | tuple):
        if len(data) == 0:
            raise ValueError("a batch is empty: it has no length")
        return data_length(next(iter(data.values())) if isinstance(data, dict) else data[0])
    raise TypeError(f"the length of a batch of type {type(data).__name__} is not known")


def to_device(data: Any, device: torch.device, warned_types: set[type] | None = None) -> Any:
    """Return a batch moved to a device.

    Args:
        data: A tensor, a NumPy array, or arbitrarily nested lists, tuples and dicts of them. For other
            objects `to` is called if they have it; the rest is returned unchanged, with a warning.
        device: The target device.
        warned_types: Types already warned about; new ones are added. If None, every call warns.

    Returns:
        The same structure, with each tensor on the device.

    Example:
        ```python
        images, labels = pytorch.to_device(batch, torch.device("cuda", 0))
        ```
    """
    if isinstance(data, torch.Tensor):
        # Without waiting, which has an effect for pinned memory (`pin_memory` of the loader).
        return data if data.device == device else data.to(device, non_blocking=True)
    if isinstance(data, dict):
        return {name: to_device(value, device, warned_types) for name, value in data.items()}
    if isinstance(data, list):
        return [to_device(value, device, warned_types) for value in data]
    if isinstance(data, tuple):
        moved = [to_device(value, device, warned_types) for value in data]
        # A named tuple takes its fields as separate arguments.
        return type(data)(*moved) if hasattr(data, "_fields") else tuple(moved)
    # There are no tensors of text or objects.
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
