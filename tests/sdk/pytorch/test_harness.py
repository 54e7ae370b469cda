"""A class as the entrypoint, trained as the configuration says (launchers spec 9, Trainer spec 15)."""

import json
import logging
import sys

import pytest

from determined import errors
from determined.exec import harness
from tests.sdk.pytorch.trial_process import TrialProcess

MODEL_DEF = """
from tests.sdk.pytorch.trials import OneVar
import determined as det

class Kept:
    last = None

class MyTrial(OneVar):
    def __init__(self, context):
        super().__init__(context, records=8, batch=context.get_per_slot_batch_size())
        Kept.last = self

class Namespace:
    class Inner(MyTrial):
        pass

class BadHP(MyTrial):
    def train_batch(self, batch, epoch_idx, batch_idx):
        raise det.InvalidHP("no such rate")

class BadInit(MyTrial):
    def __init__(self, context):
        raise det.InvalidHP("at once")

class Broken(MyTrial):
    def train_batch(self, batch, epoch_idx, batch_idx):
        raise OSError("the disk is full")

class Keras(det.Trial):
    trial_context_class = None

class NoTrial:
    pass

number = 5
"""


@pytest.fixture
def process(monkeypatch, folder):
    for name in (*harness.BACKENDS, "RANK"):
        monkeypatch.delenv(name, raising=False)
    (folder / "code" / "model_def.py").write_text(MODEL_DEF)
    monkeypatch.setattr(sys, "path", [str(folder / "code"), *sys.path])
    yield TrialProcess(monkeypatch, folder)
    sys.modules.pop("model_def", None)


def trained():
    return sys.modules["model_def"].Kept.last


def test_a_class_is_trained_to_the_end_of_the_search(process, caplog):
    caplog.set_level(logging.INFO, "determined.exec.harness")
    transport = process.become(lengths=(3, 6))
    assert harness.main(["model_def:MyTrial"]) == 0
    assert "Loading Trial implementation with entrypoint model_def:MyTrial." in caplog.text
    assert [index for _, index, _ in trained().batches] == list(range(6))
    completed = [entry for entry in transport.log if entry[0] == "completed"]
    (first, values), (second, more) = process.reported("validation")
    assert (first, second) == (3, 6)
    assert [(length, metric) for _, _, length, metric in completed] == [
        (3, values["validation_loss"]),
        (6, more["validation_loss"]),
    ]
    assert process.checkpoints()[-1][1] == 6
    assert transport.kinds()[-1] == "acknowledged"


def test_names_may_be_dotted_on_both_sides(process, folder):
    package = folder / "code" / "package"
    package.mkdir()
    (package / "inner.py").write_text("from model_def import Namespace\n")
    process.become()
    assert harness.main(["package.inner:Namespace.Inner"]) == 0
    assert type(trained()).__qualname__ == "Namespace.Inner"


def test_a_module_of_that_name_is_imported_afresh(process):
    process.become()
    sys.modules["model_def"] = sys.modules["json"]
    assert harness.main(["model_def:MyTrial"]) == 0


@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("model_def:number", AssertionError, "is not a class"),
        ("model_def:NoTrial", AssertionError, "is not a det.Trial subclass"),
        ("model_def:Missing", AttributeError, "Missing"),
        ("nowhere:MyTrial", ModuleNotFoundError, "nowhere"),
    ],
)
def test_names_of_no_trial(process, name, error, text):
    process.become()
    with pytest.raises(error, match=text):
        harness.main([name])


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["model_def"], 1, "MODULE:CLASS"),
        (["model_def:Keras"], 1, "Keras is no PyTorchTrial"),
        ([], 2, "usage"),
        (["a:b", "c:d"], 2, "usage"),
    ],
)
def test_refusals_in_one_line(process, capsys, words, code, text):
    process.become()
    with pytest.raises(SystemExit) as left:
        harness.main(words)
    message = capsys.readouterr().err
    assert (left.value.code, message.count("\n")) == (code, 1)
    assert text in message


def test_off_cluster_another_way_is_named(process, monkeypatch, capsys):
    monkeypatch.setattr("determined._info._info", None)
    with pytest.raises(SystemExit) as left:
        harness.main(["model_def:MyTrial"])
    assert left.value.code == 1
    assert "pytorch.Trainer" in capsys.readouterr().err


def test_a_task_that_is_no_trial_is_refused(process, capsys):
    process.become(task_type="COMMAND")
    with pytest.raises(SystemExit):
        harness.main(["model_def:MyTrial"])
    assert "inside a trial" in capsys.readouterr().err


@pytest.mark.parametrize(
    "cluster",
    [
        {"slot_ids": [0, 1]},
        {"rendezvous": {"container_addrs": ["a", "b"], "container_rank": 0, "container_slot_counts": [1, 1]}},
    ],
)
def test_several_slots_need_a_launcher(process, cluster):
    process.become(**cluster)
    with pytest.raises(ValueError, match="must wrap your training script with a distributed launch layer"):
        harness.main(["model_def:MyTrial"])


def test_horovod_is_not_spoken(process, monkeypatch):
    process.become(slot_ids=[0, 1])
    monkeypatch.setenv("USE_HOROVOD", "1")
    with pytest.raises(errors.InvalidExperimentException, match=r"launch\.torch_distributed"):
        harness.main(["model_def:MyTrial"])


@pytest.mark.parametrize("name", ["BadHP", "BadInit"])
def test_invalid_hyperparameters_leave_with_0(process, name):
    transport = process.become()
    with pytest.raises(SystemExit) as left:
        harness.main([f"model_def:{name}"])
    assert left.value.code == 0
    assert ("exit_early", "EXITED_REASON_INVALID_HP") in transport.log
    assert process.checkpoints() == []


def test_other_errors_come_through(process):
    transport = process.become()
    with pytest.raises(OSError, match="disk is full"):
        harness.main(["model_def:Broken"])
    assert "acknowledged" not in transport.kinds()
    assert "exit_early" not in transport.kinds()


def fit_given(process, monkeypatch, **become):
    """What `fit` and the contexts were called with."""
    arguments = {}
    from determined.pytorch import _legacy

    def train(self, plan):
        context = self._context
        profiler = self._profiler
        arguments.update(
            checkpoint_period=plan.checkpoint_period,
            validation_period=plan.validation_period,
            reporting_period=plan.reporting_period,
            checkpoint_policy=plan.policy,
            step_zero_validation=plan.step_zero_validation,
            latest_checkpoint=plan.latest_checkpoint,
            aggregation=context._stepping.aggregation,
            average=context._stepping.average,
            profiler=(profiler._enabled, profiler._begin, profiler._end),
        )

    monkeypatch.setattr(_legacy.Trainer, "_train", train)
    process.become(**become)
    assert harness.main(["model_def:MyTrial"]) == 0
    return {name: str(value) if "period" in name else value for name, value in arguments.items()}


def test_defaults(process, monkeypatch):
    assert fit_given(process, monkeypatch) == {
        "checkpoint_period": "Batch(frozenset())",
        "validation_period": "Batch(frozenset())",
        "reporting_period": "Batch(100)",
        "checkpoint_policy": "best",
        "step_zero_validation": False,
        "latest_checkpoint": None,
        "aggregation": 1,
        "average": True,
        "profiler": (False, 0, None),
    }


def test_the_configuration_decides(process, monkeypatch):
    config = {
        "min_checkpoint_period": {"records": 64},
        "min_validation_period": {"epochs": 2},
        "scheduling_unit": 7,
        "checkpoint_policy": "all",
        "perform_initial_validation": True,
        "optimizations": {"aggregation_frequency": 4, "average_aggregated_gradients": False},
        "profiling": {"enabled": True, "begin_on_batch": 3, "end_after_batch": 9, "sync_timings": False},
    }
    arguments = fit_given(
        process,
        monkeypatch,
        config=config | {"searcher": {"metric": "x", "max_length": {"batches": 4}}},
        hparams={"global_batch_size": 16},
        latest_checkpoint="abc",
    )
    assert arguments == {
        "checkpoint_period": "Batch(4)",
        "validation_period": "Epoch(2)",
        "reporting_period": "Batch(7)",
        "checkpoint_policy": "all",
        "step_zero_validation": True,
        "latest_checkpoint": "abc",
        "aggregation": 4,
        "average": False,
        "profiler": (True, 3, 9),
    }


def test_a_period_in_records_needs_a_batch_size(process):
    process.become(config={"min_validation_period": {"records": 8}}, hparams={"rate": 1.0})
    with pytest.raises(ValueError, match="global_batch_size"):
        harness.main(["model_def:MyTrial"])


def test_a_length_without_a_unit_is_refused(process):
    process.become(config={"searcher": {"metric": "validation_loss", "max_length": 4}})
    with pytest.raises(ValueError, match=r"max_length: \{batches: 100\}"):
        harness.main(["model_def:MyTrial"])


@pytest.mark.parametrize(("metric", "text"), [("accuracy", "validation_loss"), (None, "validation_loss")])
def test_a_metric_that_is_not_there_is_named(process, metric, text):
    process.become(config={"searcher": {"metric": metric, "max_length": {"batches": 4}}})
    with pytest.raises(RuntimeError, match=text):
        harness.main(["model_def:MyTrial"])


def test_preempted_resumed_and_done(process):
    config = {"scheduling_unit": 2, "optimizations": {"aggregation_frequency": 2}}
    process.become(lengths=(8,), config=config, preempt_after=1)
    assert harness.main(["model_def:MyTrial"]) == 0
    assert process.transport.kinds()[-1] == "acknowledged"
    ((uuid, steps),) = process.checkpoints()
    assert steps == 4
    state = json.loads((process.folder / "storage" / uuid / "load_data.json").read_text())
    assert state["trial_cls_spec"] == "model_def:MyTrial"
    assert "is_trainer" not in state

    process.become(lengths=(8,), config=config, latest_checkpoint=uuid, steps=4)
    assert harness.main(["model_def:MyTrial"]) == 0
    assert [index for _, index, _ in trained().batches] == [4, 5, 6, 7]
    resumed = process.reported("validation")

    process.become(lengths=(8,), config=config)
    harness.main(["model_def:MyTrial"])
    assert process.reported("validation") == resumed


@pytest.mark.parametrize(
    ("length", "unit", "steps"), [(9, "records", 4), (2, "epochs", 8), (5, "batches", 5)]
)
def test_lengths_in_every_unit(process, length, unit, steps):
    """8 records in batches of 2: 4 batches make an epoch."""
    searcher = {"metric": "validation_loss", "max_length": {unit: length}}
    transport = process.become(lengths=(length,), config={"searcher": searcher})
    harness.main(["model_def:MyTrial"])
    assert [at for at, _ in process.reported("validation")] == [steps]
    payload = {"records": steps * 2, "epochs": steps // 4, "batches": steps}[unit]
    assert f"progress {float(payload)}" in transport.calls


def test_an_operation_that_was_complete_when_the_trial_was_stopped(process):
    """Resumed at the end of an operation, a trial validates and goes on to the next one (D3)."""
    process.become(lengths=(4,), config={"scheduling_unit": 4}, preempt_after=0)
    harness.main(["model_def:MyTrial"])
    ((uuid, steps),) = process.checkpoints()
    assert (steps, process.reported("validation")) == (4, [])
    process.become(lengths=(4, 6), latest_checkpoint=uuid, steps=4)
    harness.main(["model_def:MyTrial"])
    assert [at for at, _ in process.reported("validation")] == [4, 6]
    assert [index for _, index, _ in trained().batches] == [4, 5]


def test_weights_of_another_trial_are_a_beginning(process):
    process.become(lengths=(4,))
    harness.main(["model_def:MyTrial"])
    weight = trained().weight
    ((uuid, _),) = process.checkpoints()
    state = process.folder / "info" / "trial.json"
    process.become(lengths=(2,), latest_checkpoint=uuid)
    state.write_text(json.dumps(json.loads(state.read_text()) | {"trial_id": 8}))
    harness.main(["model_def:MyTrial"])
    assert [index for _, index, _ in trained().batches] == [0, 1]
    assert trained().weight > weight > 0


@pytest.mark.parametrize(
    ("policy", "best", "smaller", "saved"),
    [
        ("best", None, True, True),
        ("best", float("inf"), True, True),
        ("best", float("-inf"), True, False),
        ("best", float("-inf"), False, True),
        ("best", 9.2e18, False, False),
        ("all", float("-inf"), True, True),
        ("none", None, True, False),
    ],
)
def test_when_a_validation_is_worth_a_checkpoint(process, policy, best, smaller, saved):
    searcher = {"metric": "validation_loss", "smaller_is_better": smaller, "max_length": {"batches": 4}}
    config = {"searcher": searcher, "checkpoint_policy": policy, "min_validation_period": {"batches": 2}}
    process.become(config=config).best = best
    harness.main(["model_def:MyTrial"])
    # The one of the end is made whatever the policy.
    assert [steps for _, steps in process.checkpoints()] == ([2, 4] if saved else [4])
