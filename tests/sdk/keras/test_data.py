"""Batches from every form of data, from any batch on, shared out among ranks."""

import itertools

import numpy as np
import pytest

from determined.errors import InvalidExperimentException
from determined.keras import SequenceAdapter, TFKerasTrialContext
from determined.keras._data import Reading, Stream, adapt, records
from tests.sdk.keras.trials import Pairs

READING = Reading(batch_size=4, shuffle=True, workers=1, ahead=3)
ARRAYS = (np.arange(10), np.arange(10) * 2)


def taken(data, count, *, skip=0, rank=0, size=1):
    return [batch[0].tolist() for batch in itertools.islice(data.endless(skip, rank, size), count)]


def test_arrays_are_cut_into_batches():
    data = adapt(ARRAYS, READING._replace(shuffle=False), 1, "hook")
    assert len(data) == 3
    assert taken(data, 4) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9], [0, 1, 2, 3]]
    x, y = next(data.once(2, 3))
    assert (x.tolist(), y.tolist()) == ([8, 9], [16, 18])


def test_inputs_by_name_and_weights():
    inputs = {"a": np.zeros((3, 2)), "b": np.ones(3)}
    data = adapt((inputs, np.arange(3), np.ones(3)), READING._replace(batch_size=2), 1, "hook")
    x, y, weight = next(data.once(0, 1))
    assert (x["a"].shape, x["b"].shape, y.shape, weight.shape) == ((2, 2), (2,), (2,), (2,))
    assert records((x, y, weight)) == 2


@pytest.mark.parametrize("skip", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("form", [ARRAYS, Pairs])
def test_skipping_is_the_same_as_reading(form, skip):
    def made():
        return adapt(form() if callable(form) else form, READING, 5, "hook")

    assert taken(made(), 9)[skip:] == taken(made(), 9 - skip, skip=skip)


def test_nothing_is_loaded_to_be_skipped():
    pairs = Pairs()
    data = adapt(pairs, READING._replace(shuffle=False), 1, "hook")
    taken(data, 2, skip=5)
    assert pairs.indexes == [5, 6]


@pytest.mark.parametrize("workers", [1, 3])
def test_ranks_take_turns_in_one_order(workers):
    def made():
        return adapt(SequenceAdapter(Pairs(), workers=workers), READING, 9, "hook")

    whole = taken(made(), 24)
    assert [taken(made(), 8, rank=rank, size=3) for rank in range(3)] == [whole[r::3] for r in range(3)]


def test_workers_load_ahead_and_fail_in_their_turn():
    class Failing(Pairs):
        def __getitem__(self, index):
            if index == 2:
                raise OSError("disk")
            return super().__getitem__(index)

    data = adapt(SequenceAdapter(Failing(), workers=2), READING._replace(shuffle=False), 1, "hook")
    batches = data.endless(0, 0, 1)
    assert [len(next(batches)[0]) for _ in range(2)] == [2, 2]
    with pytest.raises(OSError, match="disk"):
        next(batches)


class Listed:
    """As `tf.data.Dataset` behaves, of batches that are numbers."""

    def __init__(self, batches, cardinality=None, source=None):
        self.batches, self.source, self.skipped = batches, source, 0
        self._cardinality = len(batches) if cardinality is None else cardinality

    def __iter__(self):
        return iter(self.batches)

    def cardinality(self):
        return self._cardinality

    def _inputs(self):
        return [self.source] if self.source is not None else []

    def shard(self, count, index):
        return Listed(self.batches[index::count], source=self)

    def batch(self):
        return Listed(self.batches, source=self)

    def skip(self, count):
        return Listed(self.batches[count:], source=self)


@pytest.fixture
def context():
    return TFKerasTrialContext.from_config(
        {
            "entrypoint": "a:b",
            "searcher": {"name": "single", "metric": "m", "max_length": {"batches": 1}},
        }
    )


def test_a_stream_is_repeated_and_continued(context):
    wrapped = context.wrap_dataset(Listed([1, 2, 3])).batch()
    data = adapt(wrapped, READING, 1, "hook")
    assert isinstance(data, Stream)
    assert len(data) == 3
    assert list(itertools.islice(data.endless(4, 0, 1), 4)) == [2, 3, 1, 2]
    assert list(data.once(0, 1)) == [1, 2, 3]


@pytest.mark.parametrize("cardinality", [-1, -2])
def test_a_stream_without_a_length(context, cardinality):
    data = adapt(context.wrap_dataset(Listed([1, 2, 3], cardinality)), READING, 1, "hook")
    with pytest.raises(TypeError):
        len(data)


def test_what_is_no_data():
    with pytest.raises(InvalidExperimentException, match="wrap_dataset"):
        adapt(Listed([1]), READING, 1, "hook")
    with pytest.raises(InvalidExperimentException, match=r"hook\(\) returned a int"):
        adapt(3, READING, 1, "hook")
    with pytest.raises(InvalidExperimentException, match="global_batch_size"):
        adapt(ARRAYS, READING._replace(batch_size=None), 1, "hook")
    with pytest.raises(InvalidExperimentException, match=r"\[2, 3\] records"):
        adapt((np.zeros(2), np.zeros(3)), READING, 1, "hook")
    with pytest.raises(InvalidExperimentException, match="whole pass"):
        next(Stream([]).endless(0, 0, 1))
