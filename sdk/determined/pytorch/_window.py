"""Metrics of the batches between two boundaries (Trainer spec, section 7.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from determined._training.reducer import mean_of_numbers
from determined.core import DistributedContext


class Window:
    """Collects the metrics that `train_batch` returns. Tensors stay on their device until the window ends."""

    def __init__(self) -> None:
        self._batches: list[dict[str, Any]] = []
        self._names: Any = None

    def __len__(self) -> int:
        return len(self._batches)

    def add(self, metrics: Any, batch_idx: int) -> None:
        """Add the metrics of a batch.

        Raises TypeError or ValueError if they are no dict or the names differ.
        """
        if type(metrics) is not dict:
            metrics = _as_dict(metrics)
        if self._names is None:
            self._names = metrics.keys()
        elif metrics.keys() != self._names:
            _refuse(metrics, self._names, batch_idx)
        self._batches.append({name: snapshot(value) for name, value in metrics.items()})

    def close(self, distributed: DistributedContext) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return (averages, metrics of each batch), the same on all ranks, and start a new window."""
        batches = [{name: plain(value) for name, value in metrics.items()} for metrics in self._batches]
        self._batches, self._names = [], None
        if distributed.size > 1:
            batches = _over_ranks(distributed.allgather(batches))
        names = batches[0] if batches else {}
        return {name: mean_of_numbers([metrics[name] for metrics in batches]) for name in names}, batches


def numbers(batches: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Convert zero-dimensional arrays to numbers, which are much faster to report."""
    return [
        {name: v.item() if isinstance(v, np.ndarray) and v.ndim == 0 else v for name, v in metrics.items()}
        for metrics in batches
    ]


def _as_dict(returned: Any) -> dict[str, Any]:
    if isinstance(returned, torch.Tensor):
        return {"loss": returned}
    if isinstance(returned, dict):
        return dict(returned)
    raise TypeError(
        f"train_batch() must return a dict of metrics or a loss tensor, not {type(returned).__name__}"
    )


def _refuse(metrics: dict[str, Any], names: Any, batch_idx: int) -> None:
    missing, added = sorted(names - metrics.keys()), sorted(metrics.keys() - names)
    raise ValueError(
        f"train_batch() must return the same metrics for all batches of a window; batch {batch_idx} "
        f"lacks {missing} and adds {added}"
    )


def snapshot(value: Any) -> Any:
    """Return a copy of a tensor or an array; the script may change its own with the next batch.

    On an accelerator the copy is only queued, without waiting. Anything else is returned unchanged.
    """
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return value.copy() if isinstance(value, np.ndarray) else value


def plain(value: Any) -> Any:
    """Convert a tensor to an array in host memory. Return anything else unchanged."""
    if not isinstance(value, torch.Tensor):
        return value
    # NumPy has no bfloat16.
    return (value.float() if value.dtype is torch.bfloat16 else value).cpu().numpy()


def _over_ranks(each: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return, for each batch, the mean over ranks."""
    return [
        {name: _mean([metrics[name] for metrics in ranks if name in metrics]) for name in ranks[0]}
        for ranks in zip(*each, strict=False)
    ]


def _mean(values: list[Any]) -> Any:
    numbers = [value for value in values if value is not None]
    if not numbers:
        return None
    try:
        return np.mean(np.array(numbers, dtype=float), dtype=float)
    except (TypeError, ValueError):
        return numbers[0]
