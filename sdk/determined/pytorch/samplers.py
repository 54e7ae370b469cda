"""Building blocks that repeat, share out, skip and shuffle what another sampler gives (Trainer spec, 6)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
import torch
from torch.utils.data import BatchSampler, Sampler

T = TypeVar("T")


class _Wrapping(Sampler[T]):
    """Has the length of what it wraps."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __len__(self) -> int:
        return len(self._inner)

    def _endless(self) -> Iterator[T]:
        while True:
            empty = True
            for item in self._inner:
                empty = False
                yield item
            if empty:
                return

    def _share(self, num_workers: int, rank: int) -> Iterator[T]:
        return itertools.islice(iter(self._inner), rank, None, num_workers)


class _WrappingBatches(_Wrapping[list[int]], BatchSampler):
    """A batch sampler also by its class, as some frameworks ask."""


class RepeatSampler(_Wrapping[int]):
    """Repeats a sampler without end."""

    def __init__(self, sampler: Any) -> None:
        super().__init__(sampler)

    def __iter__(self) -> Iterator[int]:
        return self._endless()


class RepeatBatchSampler(_WrappingBatches):
    """The same for batches."""

    def __init__(self, batch_sampler: Any) -> None:
        super().__init__(batch_sampler)

    def __iter__(self) -> Iterator[list[int]]:
        return self._endless()


def share_length(length: int, num_workers: int, rank: int) -> int:
    """How many of `length` items are those of a rank when they go round."""
    return length // num_workers + (1 if length % num_workers > rank else 0)


class DistributedSampler(_Wrapping[int]):
    """Every `num_workers`-th item, beginning with number `rank`."""

    def __init__(self, sampler: Any, num_workers: int, rank: int) -> None:
        super().__init__(sampler)
        self._num_workers, self._rank = num_workers, rank

    def __len__(self) -> int:
        return share_length(len(self._inner), self._num_workers, self._rank)

    def __iter__(self) -> Iterator[int]:
        return self._share(self._num_workers, self._rank)


class DistributedBatchSampler(_WrappingBatches):
    """The same for batches; ValueError for a rank that does not exist."""

    def __init__(self, batch_sampler: Any, num_workers: int, rank: int) -> None:
        if num_workers < 1:
            raise ValueError(f"num_workers must be at least 1, not {num_workers}")
        if not 0 <= rank < num_workers:
            raise ValueError(f"rank must be 0 to {num_workers - 1}, not {rank}")
        super().__init__(batch_sampler)
        self._num_workers, self._rank = num_workers, rank

    def __len__(self) -> int:
        return share_length(len(self._inner), self._num_workers, self._rank)

    def __iter__(self) -> Iterator[list[int]]:
        return self._share(self._num_workers, self._rank)


class SkipSampler(_Wrapping[Any], BatchSampler):
    """Leaves out the first items, each time; its length is that of all."""

    def __init__(self, sampler: Any, skip: int) -> None:
        super().__init__(sampler)
        self._skip = skip

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(iter(self._inner), self._skip, None)


class SkipBatchSampler(_WrappingBatches):
    """The same for batches."""

    def __init__(self, batch_sampler: Any, skip: int) -> None:
        super().__init__(batch_sampler)
        self._skip = skip

    def __iter__(self) -> Iterator[list[int]]:
        return itertools.islice(iter(self._inner), self._skip, None)


class ReproducibleShuffleSampler(_Wrapping[int]):
    """Shuffles each pass with one random generator, which continues from pass to pass."""

    def __init__(self, sampler: Any, seed: int) -> None:
        super().__init__(sampler)
        self._chance = np.random.RandomState(seed)

    def __iter__(self) -> Iterator[int]:
        items = list(self._inner)
        self._chance.shuffle(items)
        return iter(items)


class ReproducibleShuffleBatchSampler(_Wrapping[list[int]]):
    """The same for batches, which stay as they are."""

    def __init__(self, batch_sampler: Any, seed: int) -> None:
        super().__init__(batch_sampler)
        self._chance = np.random.RandomState(seed)

    def __iter__(self) -> Iterator[list[int]]:
        batches = list(self._inner)
        self._chance.shuffle(batches)
        return iter(batches)


class EpochShuffleSampler(Sampler[int]):
    """Each pass in an order that follows from the seed and the number of the pass alone.

    So a resumed run continues in the order that it would have had (Trainer spec, D4).
    """

    def __init__(self, length: int, seed: int, first_pass: int = 0) -> None:
        self._length = length
        self._seed = seed
        self._pass = first_pass

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[int]:
        # Seeds that differ by 1 give streams that have nothing to do with each other.
        mixed = int(np.random.SeedSequence([self._seed, self._pass]).generate_state(1, np.uint64)[0])
        self._pass += 1
        order = torch.randperm(self._length, generator=torch.Generator().manual_seed(mixed % 2**63))
        return iter(order.tolist())


def adapt_batch_sampler(
    batch_sampler: Any, repeat: bool = False, skip: int = 0, num_replicas: int = 1, rank: int = 0
) -> BatchSampler:
    """Repeat a batch sampler, then share it out, then leave out the first batches.

    Args:
        batch_sampler: Gives lists of indexes.
        repeat: Whether it begins again whenever it ends.
        skip: Batches of this rank to leave out.
        num_replicas: Number of ranks. Each gets every `num_replicas`-th batch.
        rank: Which of them, from 0.

    Returns:
        The batch sampler of this rank.

    Raises:
        ValueError: `rank` is not below `num_replicas`.
    """
    adapted = batch_sampler
    if repeat:
        adapted = RepeatBatchSampler(adapted)
    if num_replicas > 1:
        adapted = DistributedBatchSampler(adapted, num_replicas, rank)
    if skip > 0:
        adapted = SkipBatchSampler(adapted, skip)
    rank_batches: BatchSampler = adapted
    return rank_batches
