"""Every public call refuses a wrong argument with an error that names it."""

import inspect
import pathlib
import types
import uuid

import pytest
import torch

import determined as det
from determined import core, pytorch, searcher
from determined.experimental import client
from determined.pytorch import experimental, samplers
from tests.sdk.pytorch.trials import OneVar

TORCH_BATCHES = torch.utils.data.BatchSampler(range(4), 2, drop_last=False)
MODEL = torch.nn.Linear(1, 1)
OPTIMIZER = torch.optim.SGD(MODEL.parameters(), lr=0.1)


class Odd:
    """What no call takes."""


ODD = Odd()
NO_NUMBER = (None, "x", ODD, 1.5)
NO_TEXT = (3, ODD, b"x", [])
NO_FUNCTION = (3, "x", ODD)
MANUAL = pytorch.LRScheduler.StepMode.MANUAL_STEP
NO_OBJECT = (None, 3, "x", ODD, Odd)


class Method(searcher.SearchMethod):
    def initial_operations(self, searcher_state):
        return []

    def on_trial_created(self, searcher_state, request_id):
        return []

    def on_validation_completed(self, searcher_state, request_id, metric, train_length):
        return []

    def on_trial_closed(self, searcher_state, request_id):
        return []

    def on_trial_exited_early(self, searcher_state, request_id, exited_reason):
        return []

    def progress(self, searcher_state):
        return 0.0


@pytest.fixture
def core_context(tmp_path):
    with core._dummy_init(checkpoint_storage=str(tmp_path / "stored")) as context:
        yield context


@pytest.fixture
def trial_context(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytorch.init(hparams={"lr": 0.1}, enable_tensorboard_logging=False) as context:
        context.wrap_model(MODEL)
        context.wrap_optimizer(OPTIMIZER)
        yield context


def refused(call, name, wrong, **others):
    """Assert that a call with a wrong value for `name` raises an error that names it."""
    with pytest.raises((TypeError, ValueError)) as raised:
        use(call(**{name: wrong}, **others))
    assert name in str(raised.value), raised.value


def use(made):
    """Enter a context manager or begin an iterator, since their code runs only then."""
    if hasattr(made, "__enter__"):
        with made:
            pass
    elif inspect.isgenerator(made):
        next(made)


REPORTS = [
    ("report_training_metrics", "metrics", (None, 3, "x"), {"steps_completed": 1}),
    ("report_training_metrics", "batch_metrics", (3, "x", [3]), {"steps_completed": 1, "metrics": {}}),
    ("report_training_metrics", "steps_completed", NO_NUMBER, {"metrics": {}}),
    ("report_validation_metrics", "metrics", (None, 3, "x"), {"steps_completed": 1}),
    ("report_early_exit", "reason", (None, 3, "x"), {}),
    ("upload_tensorboard_files", "selector", (None, 3), {}),
    ("upload_tensorboard_files", "mangler", (None, 3), {}),
]


@pytest.mark.parametrize(("method", "name", "wrongs", "others"), REPORTS)
def test_reports(core_context, method, name, wrongs, others):
    for wrong in wrongs:
        refused(getattr(core_context.train, method), name, wrong, **others)


STORED = [
    ("upload", "ckpt_dir", (3, ODD, b"x", ""), {}),
    ("upload", "selector", NO_FUNCTION, {"ckpt_dir": "."}),
    ("upload", "metadata", (3, "x", []), {"ckpt_dir": "."}),
    ("store_path", "metadata", (3, "x", []), {}),
    ("restore_path", "storage_id", (None, *NO_TEXT), {}),
    ("restore_path", "download_mode", (None, 3, "x"), {"storage_id": "a"}),
    ("restore_path", "selector", NO_FUNCTION, {"storage_id": "a"}),
    ("download", "storage_id", (None, *NO_TEXT), {"ckpt_dir": "out"}),
    ("download", "ckpt_dir", (None, 3, ODD), {"storage_id": "a"}),
    ("download", "download_mode", (None, 3, "x"), {"storage_id": "a", "ckpt_dir": "out"}),
    ("get_metadata", "storage_id", (None, *NO_TEXT), {}),
    ("delete", "storage_id", (None, *NO_TEXT), {}),
]


@pytest.mark.parametrize(("method", "name", "wrongs", "others"), STORED)
def test_checkpoints(core_context, method, name, wrongs, others):
    for wrong in wrongs:
        refused(getattr(core_context.checkpoint, method), name, wrong, **others)


def test_a_checkpoint_that_is_not_there_yet_is_told(core_context):
    with pytest.raises(TypeError, match="latest_checkpoint is None before the first one"):
        core_context.checkpoint.get_metadata(None)


def test_the_search(core_context):
    for wrong in (None, 3, "x"):
        refused(core_context.searcher.operations, "searcher_mode", wrong)
    op = next(core_context.searcher.operations())
    for wrong in (None, "x", ODD):
        refused(op.report_progress, "length", wrong)
    refused(op.report_completed, "searcher_metric", ODD)


@pytest.mark.parametrize("name", ["preempt_mode", "tensorboard_mode", "distributed"])
def test_the_core_context(name):
    for wrong in (3, "x", ODD):
        refused(core.init, name, wrong)


PLACE = {"rank": 0, "size": 1, "local_rank": 0, "local_size": 1, "cross_rank": 0, "cross_size": 1}


@pytest.mark.parametrize("name", [*PLACE, "pub_port", "pull_port", "chief_ip"])
def test_ranks(name):
    others = {other: value for other, value in PLACE.items() if other != name}
    for wrong in (ODD, 1.5, []):
        refused(core.DistributedContext, name, wrong, **others)
    for wrong in (None, 3, "x", ODD):
        refused(core.DistributedContext.from_horovod, "hvd", wrong)


def test_numbers_of_ranks_may_be_text_as_in_variables():
    assert core.DistributedContext(**{name: str(value) for name, value in PLACE.items()}).size == 1


@pytest.mark.parametrize(
    ("method", "name", "wrongs", "others"),
    [
        ("wrap_model", "model", NO_OBJECT, {}),
        ("wrap_optimizer", "optimizer", NO_OBJECT, {}),
        ("wrap_lr_scheduler", "lr_scheduler", NO_OBJECT, {"step_mode": MANUAL}),
        ("wrap_scaler", "scaler", NO_OBJECT, {}),
        ("autocast_forward_pass", "to_wrap", NO_OBJECT, {}),
        ("wrap_reducer", "name", (3, ODD), {"reducer": sum}),
        ("backward", "loss", NO_OBJECT, {}),
        ("backward", "gradient", (3, "x"), {"loss": torch.ones(1, requires_grad=True)}),
        ("step_optimizer", "optimizer", NO_OBJECT, {}),
        ("step_optimizer", "clip_grads", NO_FUNCTION, {"optimizer": OPTIMIZER}),
        ("step_optimizer", "scaler", (3, "x", ODD), {"optimizer": OPTIMIZER}),
        ("get_hparam", "name", (None, 3), {}),
    ],
)
def test_what_a_trial_wraps(trial_context, method, name, wrongs, others):
    for wrong in wrongs:
        refused(getattr(trial_context, method), name, wrong, **others)


def test_how_often_a_scheduler_steps(trial_context):
    scheduler = torch.optim.lr_scheduler.StepLR(OPTIMIZER, 1)
    mode = pytorch.LRScheduler.StepMode.STEP_EVERY_BATCH
    for wrong in (0, -1, *NO_NUMBER):
        others = {"lr_scheduler": scheduler, "step_mode": mode}
        refused(trial_context.wrap_lr_scheduler, "frequency", wrong, **others)


@pytest.mark.parametrize(
    ("name", "wrongs"),
    [
        ("hparams", (3, "x", [])),
        ("exp_conf", (3, "x", [])),
        ("distributed", (3, "x", ODD)),
        ("aggregation_frequency", (0, -1, *NO_NUMBER)),
    ],
)
def test_the_context_of_a_trial(name, wrongs):
    for wrong in wrongs:
        refused(pytorch.init, name, wrong)
        if name in ("hparams", "exp_conf"):
            refused(pytorch.CheckpointLoadContext, name, wrong)


def test_the_trainer(trial_context):
    trial = OneVar(trial_context)
    for wrong in NO_OBJECT:
        refused(pytorch.Trainer, "context", wrong, trial=trial)
    trainer = pytorch.Trainer(trial, trial_context)
    profile = {"sync_timings": True, "enabled": True, "begin_on_batch": 0, "end_after_batch": 1}
    for name in ("begin_on_batch", "end_after_batch"):
        others = {other: value for other, value in profile.items() if other != name}
        for wrong in ("x", -1, 1.5):
            refused(trainer.configure_profiler, name, wrong, **others)
    for wrong in (3, b"x"):
        refused(trainer.fit, "latest_checkpoint", wrong, max_length=pytorch.Batch(1))
    refused(trainer.fit, "max_length", pytorch.Batch(0))


@pytest.mark.parametrize("unit", [pytorch.Batch, pytorch.Epoch])
def test_units(unit):
    for wrong in (-1, None, "x", 1.5, True, {}, ODD):
        with pytest.raises((TypeError, ValueError), match=f"pytorch.{unit.__name__}"):
            unit(wrong)


SHARES = [
    ("skip", (-1, *NO_NUMBER)),
    ("num_replicas", (0, -1, *NO_NUMBER)),
    ("rank", (1, -1, *NO_NUMBER)),
]


@pytest.mark.parametrize(("name", "wrongs"), SHARES)
def test_shares_of_batches(name, wrongs):
    for wrong in wrongs:
        refused(pytorch.DataLoader(range(4)).get_data_loader, name, wrong)
        refused(pytorch.adapt_batch_sampler, name, wrong, batch_sampler=TORCH_BATCHES)


def test_samplers():
    for wrong in (0, -1, None, "x"):
        for kind, name in ((samplers.DistributedSampler, "sampler"),
                           (samplers.DistributedBatchSampler, "batch_sampler")):  # fmt: skip
            refused(kind, "num_workers", wrong, rank=0, **{name: TORCH_BATCHES})
    for wrong in (-1, None, "x"):
        refused(samplers.SkipBatchSampler, "skip", wrong, batch_sampler=TORCH_BATCHES)
        refused(samplers.ReproducibleShuffleSampler, "seed", wrong, sampler=range(3))
    refused(samplers.RepeatSampler, "sampler", 3)


@pytest.mark.parametrize(
    ("name", "wrongs"),
    [
        ("dataset", (None, 3, ODD)),
        ("batch_size", (0, -1, "x", 1.5)),
        ("sampler", (3, ODD)),
        ("batch_sampler", (3, ODD)),
        ("num_workers", (-1, *NO_NUMBER)),
        ("timeout", (-1, None, "x")),
        ("collate_fn", NO_FUNCTION),
        ("worker_init_fn", NO_FUNCTION),
        ("generator", (3, "x")),
        ("prefetch_factor", (0, "x")),
    ],
)
def test_loaders(name, wrongs):
    others = {} if name == "dataset" else {"dataset": range(4)}
    for wrong in wrongs:
        refused(pytorch.DataLoader, name, wrong, **others)


def test_loading(tmp_path):
    for wrong in (None, 3, ""):
        refused(pytorch.load_trial_from_checkpoint_path, "path", wrong)
    refused(pytorch.load_trial_from_checkpoint_path, "trial_class", 3, path=str(tmp_path))
    refused(pytorch.load_trial_from_checkpoint_path, "trial_kwargs", 3, path=str(tmp_path))
    refused(det.import_from_path, "path", None)


def test_operations_of_a_search():
    id = uuid.uuid4()
    for wrong in (None, 3, "no id"):
        refused(searcher.Create, "request_id", wrong, hparams={})
        refused(searcher.Close, "request_id", wrong)
        refused(searcher.ValidateAfter, "request_id", wrong, length=1)
    for wrong in (0, -1, *NO_NUMBER):
        refused(searcher.ValidateAfter, "length", wrong, request_id=id)
    for wrong in (None, 3, "x"):
        refused(searcher.Create, "hparams", wrong, request_id=id)
    for wrong in (None, "x"):
        refused(searcher.Progress, "progress", wrong)
    assert searcher.Close(str(id)).to_wire() == searcher.Close(id).to_wire()


def test_the_log_of_a_trial():
    trial = client.TrialReference(1, types.SimpleNamespace(speaking=None))
    for wrong in ("BAD", 3, ODD):
        refused(trial.logs, "min_level", wrong)
    for name in ("head", "tail"):
        refused(trial.logs, name, -1)


def test_batch_processing():
    class Processor(experimental.TorchBatchProcessor):
        def __init__(self, context):
            pass

        def process_batch(self, batch, batch_idx):
            pass

    process = experimental.torch_batch_process
    for wrong in (None, 3, Odd, Processor(None)):
        refused(process, "batch_processor_cls", wrong, dataset=range(4))
    others = {"batch_processor_cls": Processor, "dataset": range(4)}
    for name in ("batch_size", "max_batches"):
        for wrong in (0, -1, "x", 1.5):
            refused(process, name, wrong, **others)
    refused(process, "dataloader_kwargs", 3, **others)


def test_callbacks_of_other_trainers(core_context):
    lightning = pytest.importorskip("determined.lightning")
    for wrong in (None, 3, ODD):
        refused(lightning.DetCallback, "core_context", wrong)
    for wrong in (-1, None, "x"):
        refused(lightning.DetCallback, "every_n_epochs", wrong, core_context=core_context)


def test_the_callback_of_hugging_face(core_context):
    transformers = pytest.importorskip("determined.transformers")
    for wrong in (None, 3, ODD):
        refused(transformers.DetCallback, "core_context", wrong, args=None)
    for wrong in (3, "loss", ODD):
        refused(transformers.DetCallback, "filter_metrics", wrong, core_context=core_context, args=None)


def test_runners(tmp_path):
    for wrong in (None, 3, Method):
        refused(searcher.LocalSearchRunner, "search_method", wrong)
        refused(searcher.RemoteSearchRunner, "context", 3, search_method=Method())
    refused(searcher.LocalSearchRunner, "searcher_dir", 3, search_method=Method())
    assert searcher.LocalSearchRunner(Method(), str(tmp_path)).searcher_dir == pathlib.Path(tmp_path)
