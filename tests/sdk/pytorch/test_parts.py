"""Samplers, schedulers, reducers, batches: the numbers of the spec (sections 4 to 7)."""

import numpy as np
import pytest
import torch

from determined import errors, pytorch
from determined._training.reducer import reduce_metrics
from determined._training.units import NEVER, configured
from determined.pytorch import LRScheduler, Reducer, samplers
from determined.pytorch._metric_reducers import Reducers
from determined.pytorch._window import Window, numbers
from tests.sdk.pytorch.trials import Ones, OneVar

Mode = LRScheduler.StepMode


@pytest.mark.parametrize(
    ("aggregation", "mode", "frequency", "steps"),
    [
        (1, Mode.STEP_EVERY_BATCH, 2, "010101"),
        (2, Mode.STEP_EVERY_BATCH, 1, "02020202"),
        (2, Mode.STEP_EVERY_BATCH, 3, "000101000101"),
        (2, Mode.STEP_EVERY_OPTIMIZER_STEP, 1, "01010101"),
        (2, Mode.STEP_EVERY_OPTIMIZER_STEP, 3, "000001000001"),
        (2, Mode.STEP_EVERY_OPTIMIZER_STEP, 2, "00010001"),
        (1, Mode.STEP_EVERY_EPOCH, 1, "000001000001"),
        (4, Mode.STEP_EVERY_EPOCH, 1, "0001000000010001"),
        (1, Mode.STEP_EVERY_EPOCH, 2, "000000000001000000000001"),
        (1, Mode.MANUAL_STEP, 1, "0000"),
    ],
)
def test_when_schedulers_step(aggregation, mode, frequency, steps):
    scheduler = LRScheduler(None, mode, frequency)
    steps_due = [scheduler.steps_due(batch, aggregation, 6) for batch in range(len(steps))]
    assert steps_due == [int(step) for step in steps]


def test_a_step_mode_is_one():
    with pytest.raises(TypeError, match="StepMode"):
        LRScheduler(None, "every batch")


def batches(count, size):
    return torch.utils.data.BatchSampler(range(count), size, drop_last=False)


def test_shuffles_are_predictable():
    once = samplers.ReproducibleShuffleSampler(range(5), 777)
    assert [list(once), list(once)] == [[0, 4, 1, 2, 3], [2, 0, 1, 3, 4]]
    some = samplers.ReproducibleShuffleBatchSampler(batches(10, 2), 777)
    assert list(some) == [[0, 1], [8, 9], [2, 3], [4, 5], [6, 7]]
    assert list(some) == [[4, 5], [0, 1], [2, 3], [6, 7], [8, 9]]


def test_shares():
    shares = [samplers.DistributedSampler(range(19), 4, rank) for rank in range(4)]
    assert list(shares[3]) == [3, 7, 11, 15]
    assert [len(share) for share in shares] == [5, 5, 5, 4]
    sampler = samplers.DistributedBatchSampler(batches(19, 2), 4, 1)
    assert list(sampler) == [[2, 3], [10, 11], [18]]
    for workers, rank in ((0, 0), (2, -1), (2, 2)):
        with pytest.raises(ValueError, match="must be"):
            samplers.DistributedBatchSampler(batches(4, 2), workers, rank)


def test_skipping_counts_as_there():
    skipping = samplers.SkipBatchSampler(batches(6, 2), 2)
    assert (list(skipping), list(skipping), len(skipping)) == ([[4, 5]], [[4, 5]], 3)


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(("records", "replicas"), [(10, 1), (10, 2), (7, 3), (12, 5), (2, 3)])
def test_any_batch_can_be_begun_at(shuffle, records, replicas):
    """Repeat, share out, skip: the same however the beginning is found."""
    loader = pytorch.DataLoader(Ones(records), 2, shuffle=shuffle)
    loader.reseed(5)

    def some(skip, rank, count=7):
        data_loader = loader.get_data_loader(repeat=True, skip=skip, num_replicas=replicas, rank=rank)
        return [batch[0].flatten().tolist() for batch, _ in zip(data_loader, range(count), strict=False)]

    for rank in range(replicas):
        whole = some(0, rank, 40)
        for skip in range(25):
            assert some(skip, rank) == whole[skip : skip + 7]


def test_ranks_share_an_epoch():
    loader = pytorch.DataLoader(Ones(10), 2, shuffle=True)
    loader.reseed(3)
    shares = [list(loader.get_data_loader(num_replicas=2, rank=rank)) for rank in (0, 1)]
    assert [len(share) for share in shares] == [3, 2]
    records = [x for share in shares for batch in share for x in batch[0].flatten().tolist()]
    assert sorted(records) == list(range(10))


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": None},
        {"num_workers": -1},
        {"timeout": -1},
        {"sampler": range(3), "shuffle": True},
        {"batch_sampler": batches(4, 2), "batch_size": 2},
        {"batch_sampler": batches(4, 2), "shuffle": True},
        {"batch_sampler": batches(4, 2), "drop_last": True},
        {"persistent_workers": True},
        {"prefetch_factor": 2},
    ],
)
def test_what_no_loader_can_be_made_of(options):
    with pytest.raises(ValueError, match=r"need|exclud|must"):
        pytorch.DataLoader(Ones(4), **options)


def test_a_loader_by_itself_gives_one_pass():
    loader = pytorch.DataLoader(Ones(5), 2)
    assert len(loader) == len(list(loader)) == 3


@pytest.mark.parametrize("kind", [lambda batches: batches, list], ids=["BatchSampler", "list"])
def test_a_batch_sampler_decides_what_is_in_a_batch(kind):
    """Also one of torch's own class, beside which `batch_size` is 1 by default."""
    loader = pytorch.DataLoader(range(10), batch_sampler=kind(batches(10, 3)))
    loader.reseed(5)
    wanted = [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    assert [batch.tolist() for batch in loader] == wanted
    assert [batch.tolist() for batch in loader.get_data_loader()] == wanted
    resumed = iter(loader.get_data_loader(repeat=True, skip=5))
    assert [next(resumed).tolist() for _ in range(3)] == [*wanted[1:]]
    share = loader.get_data_loader(num_replicas=2, rank=1)
    assert [batch.tolist() for batch in share] == wanted[1::2]
    assert loader.batch_size is None


def test_a_batch_sampler_without_batches_gives_none():
    assert list(pytorch.DataLoader(range(10), batch_sampler=[])) == []


def test_reducers():
    values = [0.25, 0.5, 0.75, 1, 25.5, 1.9]
    assert reduce_metrics(Reducer.AVG, values) == pytest.approx(4.98, abs=0.01)
    assert reduce_metrics(Reducer.AVG, values, [1, 2, 5, 4, 5, 6]) == pytest.approx(6.43, abs=0.01)
    assert reduce_metrics(Reducer.SUM, values) == pytest.approx(29.9)
    assert (reduce_metrics(Reducer.MIN, values), reduce_metrics(Reducer.MAX, values)) == (0.25, 25.5)


def test_a_function_sees_values_in_the_order_of_batches():
    reducers, reduced = Reducers(), []
    reducer = reducers.wrap(lambda values: reduced.append(values) or len(values), "count", True, True)
    reducer.update(0)
    reducer.update(2)
    assert reducers.reduce_training(lambda mine: [mine, [[1, 3]]]) == {"count": 4}
    assert reduced == [[0, 1, 2, 3]]
    reducers.reset()
    assert reducers.reduce_validation(lambda mine: [mine]) == {"count": 0}


@pytest.mark.parametrize(
    ("name", "result", "text"),
    [(None, 1, "name=None but it did not return a dict"), ("x", {}, "returned a dict anyway")],
)
def test_names_and_dicts(name, result, text):
    reducers = Reducers()
    reducers.wrap(lambda _: result, name, True, True)
    with pytest.raises(AssertionError, match=text):
        reducers.reduce_training(lambda mine: [mine])


def test_a_reducer_that_fails_is_named():
    reducers = Reducers()
    reducers.wrap(lambda _: 1 / 0, "ratio", True, True)
    with pytest.raises(ValueError, match="'ratio' failed in cross_slot_reduce"):
        reducers.reduce_training(lambda mine: [mine])
    for odd in (7, reducers._wrapped[0].reducer):
        with pytest.raises(AssertionError):
            reducers.wrap(odd, None, True, True)


class TwoRanks:
    """The other rank trained the same batches, with values larger by 2."""

    size = 2

    def allgather(self, mine):
        return [
            mine,
            [{name: None if v is None else v + 2 for name, v in metrics.items()} for metrics in mine],
        ]


def test_a_window_over_ranks():
    window = Window()
    for index, loss in enumerate((1.0, 3.0)):
        window.add({"loss": torch.tensor(loss), "none": None}, index)
    averages, each = window.close(TwoRanks())
    assert averages == {"loss": 3.0, "none": None}
    assert [float(metrics["loss"]) for metrics in each] == [2.0, 4.0]


def test_narrow_floats_and_infinities():
    window = Window()
    for index, value in enumerate((1.5, 2.5)):
        window.add(
            {"narrow": torch.tensor(value, dtype=torch.bfloat16), "far": (-1.0) ** index * 1e400}, index
        )

    class Alone:
        size = 1

    averages, each = window.close(Alone())
    assert averages["narrow"] == 2.0
    assert np.isnan(averages["far"])
    assert numbers(each)[0] == {"narrow": 1.5, "far": float("inf")}


def test_averages_of_what_has_none():
    window = Window()
    window.add({"text": "a", "array": np.array([1.0, 3.0]), "gone": None}, 0)

    class Alone:
        size = 1

    averages, _ = window.close(Alone())
    assert averages == {"text": None, "array": 2.0, "gone": None}


@pytest.mark.parametrize(
    ("period", "unit"),
    [
        ({"batches": 0}, NEVER),
        ({"batches": 5}, pytorch.Batch(5)),
        ({"records": 64}, pytorch.Batch(4)),
        ({"records": 3}, pytorch.Batch(1)),
        ({"epochs": 2}, pytorch.Epoch(2)),
    ],
)
def test_periods_of_the_configuration(period, unit):
    assert configured(period, 16) == unit


def test_lengths_and_devices_of_batches():
    cpu = torch.device("cpu")
    assert pytorch.data_length({"x": torch.zeros(3), "y": 1}) == 3
    assert pytorch.data_length([np.zeros((2, 5))]) == 2
    with pytest.raises(ValueError, match="empty"):
        pytorch.data_length([])
    with pytest.raises(TypeError, match="int"):
        pytorch.data_length(3)
    moved = pytorch.to_device({"a": [np.ones(2), (torch.ones(1), "text")]}, cpu)
    assert isinstance(moved["a"][0], torch.Tensor)
    assert moved["a"][1][1] == "text"


def test_batch_sizes():
    with pytorch.init(hparams={"global_batch_size": 9}) as context:
        assert (context.get_per_slot_batch_size(), context.get_global_batch_size()) == (9, 9)
        assert context.get_hparams() == {"global_batch_size": 9}
        with pytest.raises(ValueError, match="no hyperparameter 'x'"):
            context.get_hparam("x")
        with pytest.raises(errors.InternalException):
            context.current_train_batch()
        with pytest.raises(errors.InternalException, match="seed"):
            context.get_trial_seed()
    with pytorch.init() as context, pytest.raises(ValueError, match="global_batch_size"):
        context.get_global_batch_size()
    with pytest.raises(errors.InvalidExperimentException, match="int"):
        pytorch.init(hparams={"global_batch_size": 2.0}).__enter__()


def test_wrapping_mistakes():
    with pytorch.init() as context:
        foreign = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(foreign, 1)
        with pytest.raises(errors.InvalidExperimentException, match="not wrapped"):
            context.wrap_lr_scheduler(scheduler, Mode.STEP_EVERY_EPOCH)
        context.wrap_optimizer(foreign)
        assert context.wrap_lr_scheduler(scheduler, Mode.STEP_EVERY_EPOCH) is scheduler
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(foreign)
        with pytest.raises(errors.InvalidExperimentException, match="MANUAL_STEP"):
            context.wrap_lr_scheduler(plateau, Mode.STEP_EVERY_EPOCH)
        with pytest.raises(errors.InvalidExperimentException, match="backward_passes_per_step"):
            context.wrap_optimizer(foreign, backward_passes_per_step=0)
        OneVar(context)
        with pytest.raises(errors.InvalidExperimentException, match="before wrap_model"):
            context.experimental.use_amp()
