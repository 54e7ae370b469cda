"""A data loader that can be repeated, sharded and resumed at any batch (Trainer spec, section 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils import data as torch_data

from determined import _arguments
from determined.pytorch.samplers import EpochShuffleSampler, adapt_batch_sampler, check_share

Collate = Callable[[list[Any]], Any]


class DataLoader:
    """Takes the arguments of `torch.utils.data.DataLoader`, for data sets with a length.

    The training loop repeats it, shards it among ranks, and continues it at the right batch after a pause
    without loading earlier batches again. The order of a shuffled pass is determined by the trial's seed and
    the pass number. Iterating it directly gives one plain pass.

    Example:
        ```python
        def build_training_data_loader(self):
            batch_size = self.context.get_per_slot_batch_size()     # records on one slot
            return pytorch.DataLoader(self.train_set, batch_size=batch_size, shuffle=True, num_workers=2)
        ```
    """

    def __init__(
        self,
        dataset: torch_data.Dataset[Any],
        batch_size: int | None = 1,
        shuffle: bool = False,
        sampler: torch_data.Sampler[int] | None = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Collate | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: torch.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
    ) -> None:
        """Check the arguments. Nothing is loaded until the loader is used.

        Args:
            dataset: A map-style data set with a length.
            batch_size: Number of records in a batch on one slot.
            shuffle: Whether to shuffle each pass differently.
            sampler: Provides the indexes of a pass, instead of `shuffle`.
            batch_sampler: Provides lists of indexes, instead of `batch_size`, `shuffle`, `sampler` and
                `drop_last`.
            num_workers: Number of worker processes that load batches; 0 loads in the training process.
            collate_fn: Builds a batch from a list of records.
            pin_memory: Whether batches are put into pinned memory, for faster copies to a GPU.
            drop_last: Whether to drop an incomplete last batch.
            timeout: Seconds to wait for a batch from a worker; 0 waits without a limit.
            worker_init_fn: Called in each worker with its number. By default it seeds NumPy's random state.
            multiprocessing_context: How workers are started.
            generator: Source of the order, instead of the trial's seed. After a pause, the indexes of earlier
                batches must then be drawn again.
            prefetch_factor: Number of batches that each worker loads ahead (default: 2).
            persistent_workers: Whether workers stay alive between passes.

        Raises:
            TypeError: If an argument has the wrong type.
            ValueError: If the data set is an `IterableDataset`, a number is out of range, or arguments
                contradict each other.
        """
        if isinstance(dataset, torch_data.IterableDataset):
            raise ValueError(
                "an IterableDataset cannot be resumed in the middle of an epoch: use a map-style data set"
            )
        chosen = sampler is not None or batch_sampler is not None
        needed = ("__getitem__",) if chosen else ("__getitem__", "__len__")
        _arguments.having("dataset", dataset, needed, "a data set with records and a length")
        _check_batches(batch_size, batch_sampler, shuffle, sampler, drop_last)
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        _arguments.function("collate_fn", collate_fn, "a list of records")
        _arguments.function("worker_init_fn", worker_init_fn, "the number of a worker")
        if generator is not None and not isinstance(generator, torch.Generator):
            raise TypeError(_arguments.wrong("generator", "a torch.Generator, or None", generator))
        self.dataset = dataset
        self.batch_size = None if batch_sampler is not None else batch_size
        self.drop_last = drop_last
        self.generator = generator
        self.num_workers = num_workers
        self.collate_fn = collate_fn or torch_data.default_collate
        self.pin_memory = pin_memory
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.prefetch_factor = prefetch_factor if num_workers == 0 else prefetch_factor or 2
        self.persistent_workers = persistent_workers
        self._sampler = sampler
        self._shuffle = shuffle
        self._seed = 0
        # A sampler without batches is false, and still the one to use.
        self.batch_sampler = self._batches(0) if batch_sampler is None else batch_sampler

    @property
    def sampler(self) -> Any:
        """Where the indexes of a pass come from, or None if your own `batch_sampler` does not say."""
        return getattr(self.batch_sampler, "sampler", None)

    @property
    def _own_order(self) -> bool:
        """Whether this class determines the order, so that any batch can be found directly."""
        return self._sampler is None and self.generator is None and self.batch_size is not None

    def _batches(self, first_pass: int) -> torch_data.BatchSampler:
        length = len(self.dataset)  # type: ignore[arg-type]
        sampler: torch_data.Sampler[int] | None = self._sampler
        if sampler is None and self._shuffle and self.generator is not None:
            sampler = torch_data.RandomSampler(range(length), generator=self.generator)
        elif sampler is None and self._shuffle:
            sampler = EpochShuffleSampler(length, self._seed, first_pass)
        elif sampler is None:
            sampler = torch_data.SequentialSampler(range(length))
        if self.batch_size is None:
            raise ValueError("a DataLoader without a batch_sampler needs a batch_size")
        return torch_data.BatchSampler(sampler, self.batch_size, self.drop_last)

    def get_data_loader(
        self, repeat: bool = False, skip: int = 0, num_replicas: int = 1, rank: int = 0
    ) -> torch_data.DataLoader[Any]:
        """Return a torch loader for one rank: repeated, then sharded, then skipping the first batches.

        Args:
            repeat: Whether it restarts whenever it ends.
            skip: Number of this rank's batches to skip. They are not loaded.
            num_replicas: Number of ranks. Each gets every `num_replicas`-th batch.
            rank: This rank, from 0.

        Returns:
            A loader whose items are whole batches of this rank.

        Example:
            ```python
            for batch in loader.get_data_loader(num_replicas=4, rank=0):
                print(pytorch.data_length(batch))
            ```
        """
        check_share(skip, num_replicas, rank)
        batches = self.batch_sampler
        if isinstance(batches, torch_data.BatchSampler) and self._own_order and len(batches):
            batches, skip, rank = self._from(repeat, skip, num_replicas, rank)
        return self._load(adapt_batch_sampler(batches, repeat, skip, num_replicas, rank))

    def _from(self, repeat: bool, skip: int, replicas: int, rank: int) -> tuple[Any, int, int]:
        """Skip complete passes without iterating: start at the pass that contains the first batch."""
        length = len(self.batch_sampler)
        first_pass = (skip * replicas + rank) // length if repeat else 0
        base = first_pass * length
        before = -(-(base - rank) // replicas) if base > rank else 0
        return self._batches(first_pass), skip - before, (rank - base) % replicas

    def reseed(self, seed: int) -> None:
        """Set the seed that determines the order of each pass.

        Args:
            seed: The seed. It has no effect with your own `sampler`, `batch_sampler` or `generator`.

        Example:
            ```python
            loader = pytorch.DataLoader(dataset, batch_size=32, shuffle=True)
            loader.reseed(42)
            ```
        """
        self._seed = seed
        if self._own_order:
            self.batch_sampler = self._batches(0)

    def _load(self, batches: Any) -> torch_data.DataLoader[Any]:
        # Workers take their seeds from a generator. Do not use the global one: consuming its state would make
        # a resumed run differ from an uninterrupted one.
        generator = self.generator or torch.Generator().manual_seed(self._seed)
        return torch_data.DataLoader(
            self.dataset,
            batch_sampler=batches,
            generator=generator,
            num_workers=self.num_workers,
            collate_fn=self.collate_fn,
            pin_memory=self.pin_memory,
            timeout=self.timeout,
            worker_init_fn=self.worker_init_fn or _seed_worker,
            multiprocessing_context=self.multiprocessing_context,
            prefetch_factor=self.prefetch_factor,
            persistent_workers=self.persistent_workers,
        )

    def __iter__(self) -> Iterator[Any]:
        return iter(self._load(self.batch_sampler))

    def __len__(self) -> int:
        return len(self.batch_sampler)


def _seed_worker(_: int) -> None:
    """Seed NumPy in a worker. torch seeds itself and `random`."""
    np.random.seed(torch.initial_seed() % 2**32)


def _check_batches(
    batch_size: int | None, batch_sampler: Any, shuffle: bool, sampler: Any, drop_last: bool
) -> None:
    if batch_size is not None:
        _arguments.integer("batch_size", batch_size, at_least=1)
    for name, iterable in (("sampler", sampler), ("batch_sampler", batch_sampler)):
        if iterable is not None:
            _arguments.having(name, iterable, ("__iter__",), "a torch sampler, or None")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise ValueError("batch_sampler excludes batch_size, shuffle, sampler and drop_last")
    if batch_sampler is None and batch_size is None:
        raise ValueError("one of batch_size and batch_sampler is needed")
    if sampler is not None and shuffle:
        raise ValueError("sampler excludes shuffle: the sampler decides the order")


def _check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> None:
    _arguments.integer("num_workers", num_workers, at_least=0)
    if _arguments.number("timeout", timeout) < 0:
        raise ValueError(f"timeout must be at least 0, not {timeout}")
    if prefetch_factor is not None:
        _arguments.integer("prefetch_factor", prefetch_factor, at_least=1)
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError("prefetch_factor needs num_workers")
    if num_workers == 0 and persistent_workers:
        raise ValueError("persistent_workers needs num_workers")
