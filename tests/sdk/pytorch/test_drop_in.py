"""Calls of scripts of 0.25 beside the trainer: loops of their own, foreign frameworks, old checkpoints."""

import collections
import dataclasses
import functools
import json
import zipfile

import numpy as np
import pytest
import torch
from torch.utils.data import BatchSampler, Sampler

from determined import pytorch
from determined.pytorch import Batch, Epoch, _models, samplers
from tests.sdk.pytorch.trials import OneVar


@pytest.mark.parametrize(
    ("unit", "reached"),
    [(Batch(1), [1, 2, 3, 4]), (Epoch(3), [3]), (Batch(0), [0, 1, 2, 3, 4]), (Batch([2, 4]), [2, 4])],
)
def test_when_a_loop_of_ones_own_stops(unit, reached):
    assert [step for step in range(5) if unit.should_stop(step)] == reached


def test_samplers_are_those_of_torch():
    inner = BatchSampler(range(10), 2, drop_last=False)
    batched = [
        samplers.RepeatBatchSampler(inner),
        samplers.DistributedBatchSampler(inner, 2, 0),
        samplers.SkipBatchSampler(inner, 1),
        samplers.SkipSampler(range(3), 1),
        pytorch.adapt_batch_sampler(inner, repeat=True, skip=1, num_replicas=2, rank=1),
    ]
    assert all(isinstance(sampler, BatchSampler) for sampler in batched)
    single = [samplers.RepeatSampler(inner), samplers.ReproducibleShuffleBatchSampler(inner, 1)]
    assert all(isinstance(sampler, Sampler) for sampler in single)
    loader = torch.utils.data.DataLoader(range(10), batch_sampler=samplers.SkipBatchSampler(inner, 3))
    assert [batch.tolist() for batch in loader] == [[6, 7], [8, 9]]


def test_a_loader_tells_its_arguments():
    """Scripts of 0.25 read them, and set some, as they do with torch's own."""
    loader = pytorch.DataLoader(range(10), 3)
    assert [getattr(loader, name) for name in ("batch_size", "drop_last", "num_workers", "timeout")] == [
        3,
        False,
        0,
        0,
    ]
    assert (loader.pin_memory, loader.worker_init_fn, loader.multiprocessing_context) == (False, None, None)
    assert (loader.prefetch_factor, loader.persistent_workers, loader.generator) == (None, False, None)
    assert isinstance(loader.sampler, torch.utils.data.SequentialSampler)
    assert loader.collate_fn([1, 2]).tolist() == [1, 2]
    loader.collate_fn = sum
    assert list(loader.get_data_loader()) == [3, 12, 21, 9]
    assert pytorch.DataLoader(range(10), num_workers=1).prefetch_factor == 2


def test_callbacks_get_numbers_of_numpy(folder):
    """They call `item()` on metrics, or write them as JSON."""
    received = []

    class Counting(OneVar):
        def evaluation_reducer(self):
            return {"validation_loss": pytorch.Reducer.AVG, "records": pytorch.Reducer.SUM}

        def evaluate_batch(self, batch):
            return super().evaluate_batch(batch) | {"records": len(batch[0])}

        def build_callbacks(self):
            callback = pytorch.PyTorchCallback()
            callback.on_validation_end = received.append
            return {"keeps": callback}

    with pytorch.init(hparams={}, exp_conf={}, enable_tensorboard_logging=False) as context:
        pytorch.Trainer(Counting(context), context).fit(max_length=Batch(1))
    (metrics,) = received
    assert metrics["records"].item() == 8
    assert json.loads(json.dumps(metrics["validation_loss"])) == metrics["validation_loss"].item()


def test_reducers_in_a_loop_of_ones_own(folder):
    with pytorch.init(hparams={}, exp_conf={}, enable_tensorboard_logging=False) as context:
        total = context.wrap_reducer(sum, "total", for_training=False)
        count = context.wrap_reducer(len, "count")
        for value in (1.0, 2.0):
            total.update(value)
            count.update(value)
        assert context.reduce_metrics(for_training=True) == {"count": 2}
        assert context.reduce_metrics(for_training=False) == {"total": 3.0, "count": 2}
        chosen = context._reducers.chosen(for_training=False)
        assert context.run_cross_slot_reduction(chosen, [[[1.0], [1.0]], [[5.0], [5.0]]]) == {
            "total": 6.0,
            "count": 2,
        }
        context.reset_reducers()
        assert context.reduce_metrics(for_training=True) == {"count": 0}


Named = collections.namedtuple("Named", ["loss", "parts"])


@dataclasses.dataclass(frozen=True)
class Structured:
    loss: torch.Tensor
    note: str = "kept"


class Attributed(collections.OrderedDict):
    """A dict whose entries are attributes, too, as outputs of Transformers are."""

    def __setitem__(self, name, value):
        super().__setitem__(name, value)
        object.__setattr__(self, name, value)


class Gives(torch.nn.Module):
    def __init__(self, make):
        super().__init__()
        self.linear = torch.nn.Linear(2, 1)
        self.make = make

    def forward(self, x):
        return self.make(self.linear(x))


@pytest.mark.parametrize(
    "make",
    [
        lambda y: y,
        lambda y: [y],
        lambda y: (y, None),
        lambda y: {"loss": y},
        lambda y: Named(y, [y]),
        lambda y: Structured(y),
        lambda y: Attributed(loss=y),
        functools.partial(lambda y: Attributed(loss=Named(y, (y,)))),
    ],
)
def test_mixed_precision_keeps_what_a_model_returns(make):
    model = Gives(make)
    _models.autocast_forward(model, "cpu")
    output = model(torch.ones(1, 2))
    expected = make(torch.zeros(1))
    assert type(output) is type(expected)
    parts = [output] if isinstance(output, torch.Tensor) else output
    parts = vars(output).values() if isinstance(output, Structured) else parts
    parts = output.values() if isinstance(output, dict) else parts
    tensors = [part for part in parts if isinstance(part, torch.Tensor)]
    assert all(tensor.dtype is torch.float32 for tensor in tensors)
    if hasattr(expected, "loss"):
        first = output.loss.loss if isinstance(output.loss, Named) else output.loss
        assert first.dtype is torch.float32


def test_outputs_of_transformers_stay_what_they_are():
    outputs = pytest.importorskip("transformers.modeling_outputs")
    model = Gives(lambda y: outputs.SequenceClassifierOutput(loss=y, logits=y))
    _models.autocast_forward(model, "cpu")
    output = model(torch.ones(1, 2))
    assert type(output) is outputs.SequenceClassifierOutput
    assert output.loss.dtype is output["logits"].dtype is output[0].dtype is torch.float32


def test_autocast_for_scripts_that_scale_themselves(folder):
    with pytorch.init(hparams={}, exp_conf={}, enable_tensorboard_logging=False) as context:
        inside = []
        model = Gives(lambda y: inside.append(y.dtype) or y)
        assert context.autocast_forward_pass(model) is model
        assert model(torch.ones(1, 2)).dtype is torch.float32
        assert inside == [torch.bfloat16]


def test_what_a_trial_is_made_with():
    assert OneVar.trial_context_class is pytorch.PyTorchTrialContext
    assert OneVar.trial_controller_class is pytorch.Trainer


OLD = """
import torch

class Old:
    def __init__(self, context):
        self.context = context

    def build_model(self):
        return torch.nn.Linear(self.context.get_hparam("width"), 1)
"""


def old_checkpoint(folder):
    """A checkpoint of the class above, without its weights."""
    path = folder / "checkpoint"
    (path / "code").mkdir(parents=True)
    (path / "code" / "old_def.py").write_text(OLD)
    metadata = '{"hparams": {"width": 3}, "experiment_config": {"entrypoint": "old_def:Old"}}'
    (path / "metadata.json").write_text(metadata)
    return path


def test_a_class_from_before_0_14_gives_the_bare_model(folder):
    path = old_checkpoint(folder)
    weights = torch.nn.Linear(3, 1)
    torch.save({"model_state_dict": weights.state_dict()}, path / "state_dict.pth")
    model = pytorch.load_trial_from_checkpoint_path(str(path))
    assert type(model) is torch.nn.Linear
    assert torch.equal(model.weight, weights.weight)


@pytest.mark.parametrize("core", ["core", "_core"], ids=["numpy 1", "numpy 2"])
def test_arrays_and_scalars_of_numpy_are_safe_to_load(folder, core):
    path = old_checkpoint(folder)
    state = {
        "model_state_dict": torch.nn.Linear(3, 1).state_dict(),
        "rng_state": {"np_rng_state": np.random.RandomState(1).get_state()},
        # As callbacks keep them.
        "callbacks": {
            "best": np.float64(0.5),
            "step": np.int32(3),
            "done": np.bool_(True),
            "names": np.array(["a"]),
        },
    }
    torch.save(state, path / "state_dict.pth")
    renamed(path / "state_dict.pth", b"numpy._core", b"numpy." + core.encode())
    assert type(pytorch.load_trial_from_checkpoint_path(str(path))) is torch.nn.Linear


def renamed(path, before, after):
    """NumPy 1 wrote the same functions under the name of the module where they were."""
    with zipfile.ZipFile(path) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    assert any(before in content for content in files.values())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as packed:
        for name, content in files.items():
            packed.writestr(name, content.replace(before, after) if name.endswith("data.pkl") else content)


def test_objects_in_arrays_are_not_safe_to_load(folder):
    path = old_checkpoint(folder)
    torch.save({"model_state_dict": {}, "x": np.array([folder], dtype=object)}, path / "state_dict.pth")
    with pytest.raises(RuntimeError, match="more than tensors, numbers, text and arrays of them"):
        pytorch.load_trial_from_checkpoint_path(str(path))
