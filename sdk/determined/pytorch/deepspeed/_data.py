"""Provides micro batches on the ranks that load data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from determined.pytorch._feed import again_and_again, without_end
from determined.pytorch._loader import DataLoader
from determined.pytorch.deepspeed._context import DeepSpeedTrialContext


class Source:
    """The loader that a user method returned on this rank, or None."""

    def __init__(self, context: DeepSpeedTrialContext, build: Any, hook: str) -> None:
        """Build the loader if this rank loads data. Raises RuntimeError if it cannot be resumed."""
        self._context = context
        self._mpu = context._mpu
        self._loader: Any = build() if self._mpu.should_build_data_loader else None
        if self._loader is None or isinstance(self._loader, DataLoader) or context._any_loader:
            return
        kind = type(self._loader)
        raise RuntimeError(
            f"{hook}() returned a {kind.__module__}.{kind.__name__}, which cannot be "
            "resumed in the middle of an epoch: use det.pytorch.DataLoader, which takes the same arguments; "
            "or call context.disable_dataset_reproducibility_checks() to use it as it is"
        )

    def shortest(self) -> float:
        """Return the smallest number of micro batches in a pass on any rank; infinite if unknown."""
        return float(min(self._context.distributed.allgather(self._length())))

    def _length(self) -> float:
        if self._loader is None:
            return math.inf
        try:
            length = len(self._loader)
        except TypeError:
            return math.inf
        if not isinstance(self._loader, DataLoader):
            return float(length)
        size, rank = self._mpu.data_parallel_world_size, self._mpu.data_parallel_rank
        # Batches are dealt out in turn, so the first ranks may have one more.
        return float(length // size + (length % size > rank))

    def endless(self, skip: int, seed: int) -> Iterator[Any] | None:
        """Yield micro batches from number `skip` on, indefinitely."""
        if self._loader is None:
            return None
        if not isinstance(self._loader, DataLoader):
            return again_and_again(self._loader)
        self._loader.reseed(seed)
        return without_end(self._read(repeat=True, skip=skip))

    def once(self) -> Iterator[Any] | None:
        """Yield the micro batches of one pass."""
        if self._loader is None:
            return None
        if not isinstance(self._loader, DataLoader):
            return self._plain()
        return self._read()

    def everywhere(self) -> bool:
        """Whether every rank has a loader."""
        return all(self._context.distributed.allgather(self._loader is not None))

    def own_length(self) -> float:
        """Return the number of micro batches in a pass on this rank."""
        return self._length()

    def _read(self, **options: Any) -> Iterator[Any]:
        share = {"num_replicas": self._mpu.data_parallel_world_size, "rank": self._mpu.data_parallel_rank}
        yield from self._loader.get_data_loader(**share, **options)

    def _plain(self) -> Iterator[Any]:
        yield from self._loader
