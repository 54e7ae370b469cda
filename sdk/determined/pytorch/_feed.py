"""Feeds batches to the loop from any loader, starting at any batch (Trainer spec, sections 5 and 13)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from determined.pytorch._context import PyTorchTrialContext
from determined.pytorch._loader import DataLoader
from determined.pytorch._trial import PyTorchTrial, evaluates_batches

_EMPTY = (
    "the loader of build_training_data_loader() gave no batch in a whole pass: its data set is empty, or has "
    "fewer records than a batch with drop_last=True"
)


class Feed:
    """This rank's training data, repeated indefinitely."""

    def __init__(self, loader: Any, context: PyTorchTrialContext) -> None:
        """Raise RuntimeError if the loader cannot be resumed, unless the script disabled that check."""
        _check(loader, context, "build_training_data_loader")
        self._loader = loader
        self._distributed = context.distributed
        own = self._length()
        # The chief's for all: shares may differ by a batch, and ranks that disagree about the end of an epoch
        # would wait for each other at different boundaries.
        self.epoch_length: float = self._distributed.broadcast(own)
        """Number of batches in a pass on the chief; infinite if unknown."""

    def _length(self) -> float:
        try:
            length = len(self._loader)
        except TypeError:
            return math.inf
        if isinstance(self._loader, DataLoader):
            length = -(-length // self._distributed.size)
        return float(length) if length else math.inf

    def start(self, skip: int, seed: int) -> Iterator[Any]:
        """Yield batches starting at number `skip`. Raises RuntimeError if there are none."""
        if isinstance(self._loader, DataLoader):
            self._loader.reseed(seed)
            place = {"num_replicas": self._distributed.size, "rank": self._distributed.rank}
            # Begun at once, so that worker processes load while the rest is prepared.
            return without_end(iter(self._loader.get_data_loader(repeat=True, skip=skip, **place)))
        return again_and_again(self._loader)


def without_end(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the batches of a loader that repeats itself, which ends only after a pass without a batch."""
    yield from batches
    raise RuntimeError(_EMPTY)


def again_and_again(loader: Any) -> Iterator[Any]:
    """Yield the batches of repeated passes indefinitely. Raises RuntimeError if a pass is empty."""
    while True:
        empty = True
        for batch in loader:
            empty = False
            yield batch
        if empty:
            raise RuntimeError(_EMPTY)


class Passes:
    """The validation data. Each iteration is one pass."""

    def __init__(self, loader: Any, trial: PyTorchTrial, context: PyTorchTrialContext) -> None:
        _check(loader, context, "build_validation_data_loader")
        self._loader = loader
        self._context = context
        self._shared = evaluates_batches(trial)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.whole())

    def whole(self) -> Any:
        """Return a loader for one pass: this rank's share, or all data for `evaluate_full_dataset`."""
        if not isinstance(self._loader, DataLoader):
            return self._loader
        distributed = self._context.distributed
        if not self._shared or distributed.size == 1:
            return self._loader.get_data_loader()
        return self._loader.get_data_loader(num_replicas=distributed.size, rank=distributed.rank)


def _check(loader: Any, context: PyTorchTrialContext, hook: str) -> None:
    if isinstance(loader, DataLoader) or context.experimental._any_loader:
        return
    raise RuntimeError(
        f"{hook}() returned a {type(loader).__module__}.{type(loader).__name__}, which cannot be resumed "
        "in the middle of an epoch. Use det.pytorch.DataLoader, which takes the same arguments; or call "
        "context.experimental.disable_dataset_reproducibility_checks() to use it as it is"
    )
