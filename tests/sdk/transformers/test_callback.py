"""A tiny model under Hugging Face's Trainer, joined to a cluster in memory (transformers spec)."""

import itertools
import json
import logging
import pathlib
import pickle
import shutil

import pytest
import torch
import transformers

import determined as det
from determined._training import pace as _pace
from determined.transformers import DetCallback
from tests.fixtures.tiers import rest_in_full

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


class Words(torch.utils.data.Dataset):
    """Sentences of eight words whose class is that of the first one."""

    def __len__(self):
        return 32

    def __getitem__(self, index):
        words = torch.arange(8) + index
        return {"input_ids": words % 30, "labels": torch.tensor(index % 2)}


def model():
    transformers.set_seed(5)
    return transformers.BertForSequenceClassification(
        transformers.BertConfig(
            vocab_size=30,
            hidden_size=8,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=8,
            max_position_embeddings=8,
        )
    )


def arguments(folder, **options):
    defaults = {
        "output_dir": str(folder),
        "max_steps": 8,
        "per_device_train_batch_size": 2,
        "logging_steps": 2,
        "eval_strategy": "steps",
        "eval_steps": 4,
        "save_steps": 4,
        "learning_rate": 0.01,
        "report_to": [],
        "disable_tqdm": True,
        "use_cpu": True,
        "seed": 5,
    }
    return transformers.TrainingArguments(**defaults | options)


class Run:
    """One process of a script, from `core.init` to its end."""

    def __init__(self, process, *, callbacks=(), callback_arguments=None, left_behind=(), **options):
        shutil.rmtree(process.folder / "output", ignore_errors=True)
        for name in left_behind:
            (process.folder / "output" / name).mkdir(parents=True)
        self.args = arguments(process.folder / "output", **options)
        with det.core.init() as core_context:
            self.callback = DetCallback(core_context, self.args, **(callback_arguments or {}))
            trainer = transformers.Trainer(
                model=model(),
                args=self.args,
                train_dataset=Words(),
                eval_dataset=Words(),
                callbacks=[self.callback, *callbacks],
            )
            trainer.train(resume_from_checkpoint=self.args.resume_from_checkpoint)
        self.steps = trainer.state.global_step
        self.weights = torch.cat([p.detach().flatten() for p in trainer.model.parameters()])


SEARCHER = {"name": "single", "metric": "eval_loss", "max_length": {"batches": 8}}


def become(process, **options):
    return process.become(**{"lengths": (8,), "config": {"searcher": SEARCHER}} | options)


def at(process, group):
    return [steps for steps, _ in process.reported(group)]


def completed(process):
    return [entry[2:] for entry in process.transport.log if entry[0] == "completed"]


def test_a_whole_run(process):
    become(process)
    run = Run(process, callback_arguments={"user_data": {"mine": 1}})
    assert run.steps == 8
    assert at(process, "training") == [2, 4, 6, 8]
    assert at(process, "validation") == [4, 8]
    assert [steps for _, steps in process.checkpoints()] == [4, 8]
    (_, values), (_, last) = process.reported("validation")
    assert completed(process) == [(8, last["eval_loss"])]
    assert values["eval_loss"] != last["eval_loss"]
    # The search has its value before the checkpoint is stored.
    assert process.transport.kinds()[-4:] == ["validation", "completed", "acknowledged", "checkpoint"]
    assert "progress 8.0" in process.transport.calls
    uuid, _ = process.checkpoints()[0]
    stored = process.folder / "storage" / uuid
    assert {path.name for path in stored.iterdir()} == {"checkpoint-4", "metadata.json"}
    assert json.loads((stored / "checkpoint-4" / "my_data.json").read_text()) == {"mine": 1}
    assert process.transport.metadata[uuid]["trial_id"] == 7


def test_a_subclass_stores_data_without_a_json_form(process, monkeypatch):
    class Pickled(DetCallback):
        def _on_save_user_data(self, save_path: str) -> None:
            (pathlib.Path(save_path) / "my_data.pkl").write_bytes(pickle.dumps(self.user_data))

    monkeypatch.setitem(globals(), "DetCallback", Pickled)
    become(process)
    Run(process, callback_arguments={"user_data": {1, 2}})
    for uuid, steps in process.checkpoints():
        folder = process.folder / "storage" / uuid / f"checkpoint-{steps}"
        assert pickle.loads((folder / "my_data.pkl").read_bytes()) == {1, 2}
        assert not (folder / "my_data.json").exists()


def test_names_of_the_trainer_are_reported(process):
    become(process)
    Run(process)
    _, first = process.reported("training")[0]
    assert {"loss", "learning_rate", "epoch"} <= set(first)
    # The averages at the end are no metrics of a step.
    assert all("train_loss" not in metrics for _, metrics in process.reported("training"))


def test_only_what_is_wanted(process):
    become(process)
    Run(process, callback_arguments={"filter_metrics": ["loss"]})
    assert all(set(metrics) == {"loss"} for _, metrics in process.reported("training"))
    assert all(set(metrics) == {"eval_loss"} for _, metrics in process.reported("validation"))


@pytest.fixture(scope="module")
def undisturbed(own_process):
    """A run that nobody pauses, and what it reported."""
    with own_process() as process:
        become(process)
        return Run(process), [process.reported(group) for group in GROUPS]


@pytest.mark.parametrize("stop", rest_in_full([3, 7, 2, 4, 5], 2))
def test_paused_and_resumed_it_is_the_same(process, monkeypatch, undisturbed, stop):
    monkeypatch.setattr(_pace, "EVERY_S", 0.0)
    whole, expected = undisturbed
    become(process, preempt_after=10**6)
    first = Run(process, callbacks=[PreemptAt(process, stop)])
    assert (first.steps, completed(process)) == (stop, [])
    reported = [process.reported(group) for group in GROUPS]
    assert process.transport.kinds()[-1] == "acknowledged"
    uuid, steps = process.checkpoints()[-1]
    assert steps == stop

    become(process, latest_checkpoint=uuid, steps=stop)
    second = Run(process)
    assert second.steps == 8
    assert torch.equal(second.weights, whole.weights)
    reports = [before + process.reported(group) for before, group in zip(reported, GROUPS, strict=True)]
    assert [[at for at, _ in rows] for rows in reports] == [[2, 4, 6, 8], [4, 8]]
    assert [m["eval_loss"] for _, m in reports[1]] == [m["eval_loss"] for _, m in expected[1]]


def test_checkpoints_that_were_in_the_output_directory_are_not_resumed_from(process, undisturbed):
    """A run on the user's machine leaves them behind, and they are submitted with the code."""
    become(process, lengths=(4,))
    Run(process)
    uuid, steps = process.checkpoints()[-1]
    become(process, latest_checkpoint=uuid, steps=steps)
    resumed = Run(process, left_behind=["checkpoint-100"])
    assert (resumed.args.resume_from_checkpoint or "").endswith("checkpoint-4")
    assert torch.equal(resumed.weights, undisturbed[0].weights)


GROUPS = ("training", "validation")


class PreemptAt(transformers.TrainerCallback):
    """The cluster wants its slots back while this step is trained."""

    def __init__(self, process, step):
        self.process, self.step = process, step

    def on_step_begin(self, args, state, control, **_):
        if state.global_step + 1 == self.step:
            self.process.transport.preempt_after = 0


@pytest.mark.parametrize(("lengths", "evaluated"), [((4, 8), [4, 8]), ((3, 8), [3, 4, 8])])
def test_operations_one_after_the_other(process, lengths, evaluated):
    become(process, lengths=lengths)
    Run(process)
    assert [length for length, _ in completed(process)] == list(lengths)
    assert at(process, "validation") == evaluated
    values = {steps: metrics["eval_loss"] for steps, metrics in process.reported("validation")}
    assert completed(process) == [(length, values[length]) for length in lengths]


def test_lengths_in_epochs(process):
    searcher = SEARCHER | {"max_length": {"epochs": 2}}
    become(process, lengths=(1, 2), config={"searcher": searcher})
    run = Run(process, max_steps=-1, num_train_epochs=2, eval_strategy="epoch", save_strategy="epoch")
    assert (run.steps, run.callback.searcher_unit) == (32, "epochs")
    assert at(process, "validation") == [16, 32]
    assert [length for length, _ in completed(process)] == [1, 2]
    assert [steps for _, steps in process.checkpoints()] == [16, 32]


def test_a_search_that_ends_early_ends_the_training(process):
    become(process, lengths=(4,))
    assert Run(process).steps == 4


def test_a_bare_number_counts_steps(process, caplog):
    become(process, config={"searcher": SEARCHER | {"max_length": 8}})
    run = Run(process)
    assert (run.callback.searcher_unit, run.callback.searcher_max_length) == ("batches", 8)
    assert [length for length, _ in completed(process)] == [8]
    assert "max_steps is" not in caplog.text


@pytest.mark.parametrize(
    ("length", "options", "text"),
    [
        ({"batches": 8}, {"max_steps": 9}, "8 batches, but max_steps is 9"),
        ({"epochs": 1}, {"max_steps": -1, "num_train_epochs": 3}, "1 epochs, but num_train_epochs is 3"),
    ],
)
def test_lengths_that_differ_are_warned_of(process, caplog, length, options, text):
    become(process, lengths=(1,), config={"searcher": SEARCHER | {"max_length": length}})
    Run(process, **options)
    assert text in caplog.text


def test_a_script_may_take_its_length_from_the_search(process, caplog):
    become(process, config={"searcher": SEARCHER})
    with det.core.init() as core_context:
        args = arguments(process.folder, max_steps=3)
        callback = DetCallback(core_context, args)
        args.max_steps = callback.searcher_max_length
        transformers.Trainer(
            model=model(), args=args, train_dataset=Words(), eval_dataset=Words(), callbacks=[callback]
        ).train()
    assert [length for length, _ in completed(process)] == [8]
    assert "max_steps is" not in caplog.text


def test_a_metric_that_never_came(process, caplog):
    become(process, config={"searcher": SEARCHER | {"metric": "eval_accuracy"}})
    Run(process, metric_for_best_model="eval_loss", save_strategy="best")
    assert "'eval_accuracy' was never logged" in caplog.text
    ((_, value),) = completed(process)
    # The best so far, before the last evaluation was compared with it.
    assert value == process.reported("validation")[0][1]["eval_loss"]


def test_a_metric_of_the_training_needs_no_evaluation(process):
    become(process, config={"searcher": SEARCHER | {"metric": "loss"}})
    Run(process, eval_strategy="no")
    assert at(process, "validation") == []
    assert completed(process) == [(8, process.reported("training")[-1][1]["loss"])]


def test_weights_of_another_trial_are_a_beginning(process):
    become(process)
    first = Run(process)
    uuid, _ = process.checkpoints()[-1]
    process.transport.metadata[uuid]["trial_id"] = 99
    become(process, lengths=(2,), latest_checkpoint=uuid)
    second = Run(process, learning_rate=0.0)
    assert second.steps == 2
    assert torch.equal(second.weights, first.weights)
    assert at(process, "training") == [2]


def test_off_cluster_it_is_silent(process, monkeypatch, caplog):
    monkeypatch.setattr("determined._info._info", None)
    caplog.set_level(logging.WARNING, "determined")
    process.transport = None
    run = Run(process)
    assert run.steps == 8
    assert run.callback.current_op is None
    assert not [record for record in caplog.records if record.name.startswith("determined")]


class Ranks:
    """Two ranks of which the other one says what the chief says."""

    def __init__(self):
        self.values = []

    def broadcast(self, value):
        self.values.append(value)
        return value


def test_looking_once_a_second():
    now = [0.0]
    pace = _pace.Pace(Ranks(), lambda: now[0])
    looks = []
    for step in range(1, 500):
        if pace.is_due(step):
            looks.append(step)
        now[0] += 0.01 if step < 300 else 2.0
    gaps = [after - before for before, after in itertools.pairwise(looks)]
    # Steps of 10 ms: strides double up to a hundred; then each step takes longer than a second.
    assert gaps[:7] == [1, 2, 4, 8, 16, 32, 64]
    assert max(gaps) <= 101
    assert set(gaps[-50:]) == {1}


LONG = {"lengths": (40,), "config": {"searcher": SEARCHER | {"max_length": {"batches": 40}}}}


@pytest.fixture(scope="module")
def undisturbed_for_long(own_process):
    with own_process() as process:
        become(process, **LONG)
        return Run(process, max_steps=40)


@pytest.mark.parametrize("stop", rest_in_full([20, 16, 37]))
def test_resumed_in_a_later_epoch(process, monkeypatch, undisturbed_for_long, stop):
    """An epoch is 16 steps: the order of the next one goes on where it was."""
    monkeypatch.setattr(_pace, "EVERY_S", 0.0)
    become(process, preempt_after=10**6, **LONG)
    assert Run(process, max_steps=40, callbacks=[PreemptAt(process, stop)]).steps == stop
    uuid, _ = process.checkpoints()[-1]
    become(process, latest_checkpoint=uuid, steps=stop, **LONG)
    assert torch.equal(Run(process, max_steps=40).weights, undisturbed_for_long.weights)
