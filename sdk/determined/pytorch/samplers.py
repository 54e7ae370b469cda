"""Samplers that repeat, shard, skip or shuffle another sampler's items (Trainer spec, 6)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
import torch
from torch.utils.data import BatchSampler, Sampler

from determined import _arguments

T = TypeVar("T")


class _Wrapping(Sampler[T]):
    """Base class of samplers that have the length of the wrapped sampler."""

    def __init__(self, inner: Any) -> None:
        _arguments.having("the wrapped sampler", inner, ("__iter__",), "a sampler")
        self._inner = inner

    def __len__(self) -> int:
        return len(self._inner)

    def _endless(self) -> Iterator[T]:
        while True:
            empty = True
            for item in self._inner:
                empty = False
                yield item
            # An empty sampler would be asked for ever.
            if empty:
                return

    def _share(self, num_workers: int, rank: int) -> Iterator[T]:
        return itertools.islice(iter(self._inner), rank, None, num_workers)


class _WrappingBatches(_Wrapping[list[int]], BatchSampler):
    """Also derives from BatchSampler, because some frameworks check for it."""


class RepeatSampler(_Wrapping[int]):
    """Repeats a sampler indefinitely.

    Example:
        ```python
        sampler = samplers.RepeatSampler([0, 1, 2])
        list(itertools.islice(sampler, 7))    # [0, 1, 2, 0, 1, 2, 0]
        ```
    """

    def __init__(self, sampler: Any) -> None:
        super().__init__(sampler)

    def __iter__(self) -> Iterator[int]:
        return self._endless()


class RepeatBatchSampler(_WrappingBatches):
    """Repeats a batch sampler indefinitely.

    Example:
        ```python
        batches = torch.utils.data.BatchSampler(range(4), batch_size=2, drop_last=False)
        list(itertools.islice(samplers.RepeatBatchSampler(batches), 3))    # [[0, 1], [2, 3], [0, 1]]
        ```
    """

    def __init__(self, batch_sampler: Any) -> None:
        super().__init__(batch_sampler)

    def __iter__(self) -> Iterator[list[int]]:
        return self._endless()


def check_share(skip: int, count: int, rank: int, counted: str = "num_replicas") -> None:
    """Raise TypeError or ValueError for numbers that name no share, or skip no whole number of items."""
    _arguments.integer("skip", skip, at_least=0)
    _arguments.integer("rank", rank, at_least=0, at_most=_arguments.integer(counted, count, at_least=1) - 1)


def share_length(length: int, num_workers: int, rank: int) -> int:
    """Return a rank's share of `length` items that are distributed round-robin."""
    return length // num_workers + (1 if length % num_workers > rank else 0)


class DistributedSampler(_Wrapping[int]):
    """Yields every `num_workers`-th item, starting with item number `rank`.

    Example:
        ```python
        list(samplers.DistributedSampler(range(7), num_workers=3, rank=1))    # [1, 4]
        ```
    """

    def __init__(self, sampler: Any, num_workers: int, rank: int) -> None:
        super().__init__(sampler)
        check_share(0, num_workers, rank, "num_workers")
        self._num_workers, self._rank = num_workers, rank

    def __len__(self) -> int:
        return share_length(len(self._inner), self._num_workers, self._rank)

    def __iter__(self) -> Iterator[int]:
        return self._share(self._num_workers, self._rank)


class DistributedBatchSampler(_WrappingBatches):
    """Yields every `num_workers`-th batch. Raises ValueError for an invalid rank.

    Example:
        ```python
        batches = torch.utils.data.BatchSampler(range(6), batch_size=2, drop_last=False)
        list(samplers.DistributedBatchSampler(batches, num_workers=2, rank=0))    # [[0, 1], [4, 5]]
        ```
    """

    def __init__(self, batch_sampler: Any, num_workers: int, rank: int) -> None:
        check_share(0, num_workers, rank, "num_workers")
        super().__init__(batch_sampler)
        self._num_workers, self._rank = num_workers, rank

    def __len__(self) -> int:
        return share_length(len(self._inner), self._num_workers, self._rank)

    def __iter__(self) -> Iterator[list[int]]:
        return self._share(self._num_workers, self._rank)


class SkipSampler(_Wrapping[Any], BatchSampler):
    """Skips the first items on every pass. Its length still counts all items.

    Example:
        ```python
        sampler = samplers.SkipSampler(range(5), skip=2)
        list(sampler)    # [2, 3, 4]
        len(sampler)     # 5
        ```
    """

    def __init__(self, sampler: Any, skip: int) -> None:
        super().__init__(sampler)
        self._skip = _arguments.integer("skip", skip, at_least=0)

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(iter(self._inner), self._skip, None)


class SkipBatchSampler(_WrappingBatches):
    """Skips the first batches on every pass. Its length still counts all batches.

    Example:
        ```python
        batches = torch.utils.data.BatchSampler(range(6), batch_size=2, drop_last=False)
        list(samplers.SkipBatchSampler(batches, skip=1))    # [[2, 3], [4, 5]]
        ```
    """

    def __init__(self, batch_sampler: Any, skip: int) -> None:
        super().__init__(batch_sampler)
        self._skip = _arguments.integer("skip", skip, at_least=0)

    def __iter__(self) -> Iterator[list[int]]:
        return itertools.islice(iter(self._inner), self._skip, None)


class ReproducibleShuffleSampler(_Wrapping[int]):
    """Shuffles each pass with one random generator that continues from pass to pass.

    Example:
        ```python
        sampler = samplers.ReproducibleShuffleSampler(range(100), seed=7)
        first, second = list(sampler), list(sampler)    # two orders, the same two in every process
        ```
    """

    def __init__(self, sampler: Any, seed: int) -> None:
        super().__init__(sampler)
        # Not a Generator: NumPy keeps the sequence of RandomState forever, and a paused trial may continue
        # with another release of NumPy.
        self._chance = np.random.RandomState(_arguments.integer("seed", seed, 0, 2**32 - 1))

    def __iter__(self) -> Iterator[int]:
        items = list(self._inner)
        self._chance.shuffle(items)
        return iter(items)


class ReproducibleShuffleBatchSampler(_Wrapping[list[int]]):
    """Shuffles the order of batches on each pass, but not their contents.

    Example:
        ```python
        batches = torch.utils.data.BatchSampler(range(100), batch_size=10, drop_last=False)
        sampler = samplers.ReproducibleShuffleBatchSampler(batches, seed=7)
        first = next(iter(sampler))    # one of the ten batches, such as [20, 21, 22, ...]
        ```
    """

    def __init__(self, batch_sampler: Any, seed: int) -> None:
        super().__init__(batch_sampler)
        self._chance = np.random.RandomState(_arguments.integer("seed", seed, 0, 2**32 - 1))

    def __iter__(self) -> Iterator[list[int]]:
        batches = list(self._inner)
        self._chance.shuffle(batches)
        return iter(batches)


class EpochShuffleSampler(Sampler[int]):
    """Shuffles each pass in an order determined only by the seed and the pass number.

    A resumed run therefore continues in the same order as an uninterrupted one (Trainer spec, D4).

    Example:
        ```python
        sampler = samplers.EpochShuffleSampler(len(dataset), seed=7)
        first, second = list(sampler), list(sampler)
        resumed = samplers.EpochShuffleSampler(len(dataset), seed=7, first_pass=1)
        assert list(resumed) == second
        ```
    """

    def __init__(self, length: int, seed: int, first_pass: int = 0) -> None:
        self._length = length
        self._seed = seed
        self._pass = first_pass

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[int]:
        # SeedSequence makes the streams of consecutive seeds independent.
        mixed = int(np.random.SeedSequence([self._seed, self._pass]).generate_state(1, np.uint64)[0])
        self._pass += 1
        order = torch.randperm(self._length, generator=torch.Generator().manual_seed(mixed % 2**63))
        return iter(order.tolist())


def adapt_batch_sampler(
    batch_sampler: Any, repeat: bool = False, skip: int = 0, num_replicas: int = 1, rank: int = 0
) -> BatchSampler:
    """Repeat a batch sampler, then shard it, then skip the first batches.

    Args:
        batch_sampler: Yields lists of indexes.
        repeat: Whether it restarts whenever it ends.
        skip: Number of this rank's batches to skip.
        num_replicas: Number of ranks. Each gets every `num_replicas`-th batch.
        rank: This rank, from 0.

    Returns:
        The batch sampler of this rank.

    Raises:
        TypeError: If one of the numbers is no integer.
        ValueError: If `rank` is not below `num_replicas`, or one of them is negative.

    Example:
        ```python
        batches = torch.utils.data.BatchSampler(range(100), batch_size=10, drop_last=False)
        mine = samplers.adapt_batch_sampler(batches, num_replicas=2, rank=1)    # every second batch
        ```
    """
    check_share(skip, num_replicas, rank)
    # Repeating comes first, so that every rank always has a next batch and none waits for the others at
    # the end of a pass. Skipping comes last, since it counts the batches of this rank.
    adapted = batch_sampler
    if repeat:
        adapted = RepeatBatchSampler(adapted)
    if num_replicas > 1:
        adapted = DistributedBatchSampler(adapted, num_replicas, rank)
    if skip > 0:
        adapted = SkipBatchSampler(adapted, skip)
    rank_batches: BatchSampler = adapted
    return rank_batches
