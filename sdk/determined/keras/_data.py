"""Batches for the training loop, from every form of data that a TFKerasTrial may return.

Reading can start at any batch. Batches with an index (arrays, `PyDataset`) are skipped without loading them,
and the order of an epoch depends only on the trial's seed and the epoch number. Ranks take batches
round-robin: batch g of the endless sequence of passes goes to rank g mod size.
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import itertools
import logging
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import keras
import numpy as np

from determined import core
from determined.errors import InvalidExperimentException

logger = logging.getLogger("determined.keras")
InputData = Any
"""A tuple of arrays, a `keras.utils.PyDataset`, a `SequenceAdapter`, or a wrapped `tf.data.Dataset`."""
_MARK = "_determined_wrapped"


class SequenceAdapter:
    """A `keras.utils.PyDataset` (`Sequence`), with the number of threads that load its batches.

    Example:
        ```python
        def build_training_data_loader(self):
            return SequenceAdapter(MySequence(), workers=4)
        ```
    """

    def __init__(
        self,
        sequence: keras.utils.PyDataset,
        use_multiprocessing: bool = False,
        workers: int = 1,
        max_queue_size: int = 10,
    ) -> None:
        """Create an adapter.

        Args:
            sequence: Provides batches by index, `len()` of them per pass.
            use_multiprocessing: Ignored with a warning: threads load the batches.
            workers: Number of threads that load batches ahead.
            max_queue_size: Number of batches to load ahead.
        """
        if use_multiprocessing:
            logger.warning("use_multiprocessing has no effect: batches are loaded by threads (workers)")
        self.sequence = sequence
        self.workers = workers
        self.max_queue_size = max_queue_size


class Reading(NamedTuple):
    """How batches are loaded."""

    batch_size: int | None
    """For arrays, the number of records on one slot."""
    shuffle: bool
    workers: int
    ahead: int


class Batches:
    """Batches with an index; `len()` is the number per pass."""

    def __init__(self, length: int, load: Callable[[int, int], Any], workers: int, ahead: int) -> None:
        """`load(epoch, index)` returns a batch."""
        self._length = length
        self._load = load
        self._workers = workers
        self._ahead = max(1, ahead)

    def __len__(self) -> int:
        return self._length

    def endless(self, skip: int, rank: int, size: int) -> Iterator[Any]:
        """Yield this rank's batches, starting at its number `skip`."""
        places = (divmod(at, self._length) for at in itertools.count(skip * size + rank, size))
        return self._loaded(places)

    def once(self, rank: int, size: int) -> Iterator[Any]:
        """Yield this rank's batches of one pass."""
        return self._loaded((0, index) for index in range(rank, self._length, size))

    def _loaded(self, places: Iterable[tuple[int, int]]) -> Iterator[Any]:
        # Loads on demand; a pool of one thread would only add a queue.
        if self._workers <= 1:
            yield from (self._load(*place) for place in places)
            return
        with concurrent.futures.ThreadPoolExecutor(self._workers, "determined-keras-data") as pool:
            places = iter(places)
            first = itertools.islice(places, self._ahead)
            queue = collections.deque(pool.submit(self._load, *place) for place in first)
            while queue:
                # In the order of submission, whichever thread is done first: the order of batches must not
                # depend on timing.
                yield queue.popleft().result()
                queue.extend(pool.submit(self._load, *place) for place in itertools.islice(places, 1))


class Stream:
    """Batches read sequentially, as from `tf.data`. `wrap_dataset` has already sharded them."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __len__(self) -> int:
        """Return the number of batches in a pass. Raises TypeError if it is unknown."""
        length = _cardinality(self._data)
        if length is None:
            raise TypeError("the data has no length")
        return length

    def endless(self, skip: int, rank: int, size: int) -> Iterator[Any]:
        """Yield batches from number `skip` on. Raises InvalidExperimentException if a pass is empty."""
        with contextlib.suppress(TypeError):
            # Whole passes need not be read to be skipped.
            skip %= len(self)
        yield from self._skipped(skip)
        while True:
            empty = True
            for batch in self._data:
                empty = False
                yield batch
            if empty:
                raise InvalidExperimentException("the training data gave no batch in a whole pass")

    def _skipped(self, skip: int) -> Iterator[Any]:
        if skip and callable(getattr(self._data, "skip", None)):
            return iter(self._data.skip(skip))
        return itertools.islice(self._data, skip, None)

    def once(self, rank: int, size: int) -> Iterator[Any]:
        """One pass."""
        return iter(self._data)


def adapt(data: Any, reading: Reading, seed: int, hook: str) -> Batches | Stream:
    """Convert data of any supported form to batches.

    Raises:
        InvalidExperimentException: If the form is unknown, or the data is empty or not wrapped.
    """
    if isinstance(data, SequenceAdapter):
        reading = reading._replace(workers=data.workers, ahead=data.max_queue_size)
        data = data.sequence
    if isinstance(data, keras.utils.PyDataset):
        return _of_sequence(data, reading, seed, hook)
    if isinstance(data, tuple | list) and len(data) in (2, 3):
        return _of_arrays(tuple(data), reading, seed, hook)
    if not hasattr(data, "__iter__"):
        raise InvalidExperimentException(
            f"{hook}() returned a {type(data).__name__}: return a tuple (x, y) of arrays, a "
            "keras.utils.PyDataset, or a tf.data.Dataset"
        )
    if callable(getattr(data, "cardinality", None)) and not getattr(data, _MARK, False):
        _check_wrapped(data, hook)
    return Stream(data)


def sharded(dataset: Any, group: core.DistributedContext, shard: bool) -> Any:
    """Return this rank's shard of a `tf.data.Dataset`, and register it as wrapped."""
    own_part = dataset.shard(group.size, group.rank) if shard and group.size > 1 else dataset
    _wrapped.append(own_part)
    return own_part


_wrapped: list[Any] = []
"""Wrapped data sets. Operations on a data set create new ones, which refer to their input."""


def _check_wrapped(data: Any, hook: str) -> None:
    # Names say nothing about which data set it is, so all inputs are followed up to a wrapped one.
    visited, pending = set(), [data]
    while pending:
        wrapped_dataset = pending.pop()
        if any(wrapped_dataset is wrapped for wrapped in _wrapped):
            return
        if id(wrapped_dataset) not in visited:
            visited.add(id(wrapped_dataset))
            pending.extend(wrapped_dataset._inputs() if hasattr(wrapped_dataset, "_inputs") else ())
    raise InvalidExperimentException(
        f"{hook}() returned a tf.data.Dataset that was not wrapped: call context.wrap_dataset(dataset) right "
        "after it is made"
    )


def records(batch: Any) -> int:
    """Return the number of records in a batch: the first dimension of its first array."""
    for leaf in keras.tree.flatten(batch):
        shape = getattr(leaf, "shape", None)
        if shape is not None and len(shape):
            return int(shape[0])
    return 1


def _cardinality(data: Any) -> int | None:
    if callable(getattr(data, "cardinality", None)):
        count = int(data.cardinality())
        # tf.data returns -1 for infinite and -2 for unknown.
        return count if count > 0 else None
    try:
        return len(data) or None
    except TypeError:
        return None


def _order(length: int, seed: int, epoch: int, shuffle: bool) -> Any:
    if not shuffle:
        return np.arange(length)
    # Of seed and epoch only, so that a run that resumes finds the order without the epochs before.
    return np.random.RandomState([seed % 2**32, epoch]).permutation(length)


class _Orders:
    """Caches the order of the epoch being read, and of the next one, which may already be loading."""

    def __init__(self, length: int, seed: int, shuffle: bool) -> None:
        self._make = lambda epoch: _order(length, seed, epoch, shuffle)
        self._by_epoch: dict[int, Any] = {}

    def of(self, epoch: int) -> Any:
        order = self._by_epoch.get(epoch)
        if order is None:
            order = self._make(epoch)  # type: ignore[no-untyped-call]
            self._by_epoch = {
                e: epoch_order for e, epoch_order in self._by_epoch.items() if e >= epoch - 1
            } | {epoch: order}
        return order


def _of_sequence(data: Any, reading: Reading, seed: int, hook: str) -> Batches:
    length = len(data)
    if not length:
        raise InvalidExperimentException(f"{hook}() returned a {type(data).__name__} without a batch")
    orders = _Orders(length, seed, reading.shuffle)

    def load(epoch: int, index: int) -> Any:
        return data[int(orders.of(epoch)[index])]

    return Batches(length, load, reading.workers, reading.ahead)


def _of_arrays(data: tuple[Any, ...], reading: Reading, seed: int, hook: str) -> Batches:
    if reading.batch_size is None:
        raise InvalidExperimentException(
            f"{hook}() returned arrays, whose batches are as large as the hyperparameter global_batch_size "
            "says: add it to hyperparameters"
        )
    size = reading.batch_size
    arrays = keras.tree.map_structure(np.asarray, data)
    lengths = {len(array) for array in keras.tree.flatten(arrays)}
    if len(lengths) != 1 or not max(lengths):
        raise InvalidExperimentException(
            f"{hook}() returned arrays of {sorted(lengths)} records: all must have the same number, not 0"
        )
    (count,) = lengths
    orders = _Orders(count, seed, reading.shuffle)

    def load(epoch: int, index: int) -> Any:
        chosen = orders.of(epoch)[index * size : (index + 1) * size]
        return keras.tree.map_structure(lambda array: array[chosen], arrays)

    return Batches(math.ceil(count / size), load, 1, reading.ahead)
