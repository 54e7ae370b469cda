"""The loop: boundaries, aggregation, callbacks, ends (Trainer spec, sections 3, 8, 9 and 18)."""

import functools
import logging
import warnings

import numpy as np
import pytest
import torch

from determined import errors, pytorch
from determined.pytorch import Batch, Epoch
from tests.sdk.pytorch.trials import Ones, OneVar


def train(kind=OneVar, *, aggregation=1, arguments=None, **fit):
    with pytorch.init(aggregation_frequency=aggregation, enable_tensorboard_logging=False) as context:
        trial = kind(context, **(arguments or {}))
        fit = {"max_length": Batch(4)} | fit
        pytorch.Trainer(trial, context).fit(**fit)
    return trial


@pytest.fixture
def reports(caplog):
    """What a run reported: (kind, steps), in order."""
    caplog.set_level(logging.INFO, "determined.core")

    def read_reports():
        lines = []
        for record in caplog.records:
            words = record.getMessage().split()
            if words[0] == "reported" and words[2] == "metrics:":
                lines.append((words[1], int(words[3].partition("=")[2].strip(","))))
            elif words[:2] == ["saved", "checkpoint"]:
                lines.append(("checkpoint", None))
        return lines

    return read_reports


def test_boundaries(reports):
    trial = train(
        max_length=Batch(7),
        checkpoint_period=Batch(3),
        validation_period=Batch(4),
        reporting_period=Batch(2),
        checkpoint_policy="none",
        step_zero_validation=True,
    )
    assert reports() == [
        ("validation", 0),
        ("training", 2),
        ("training", 3),
        ("checkpoint", None),
        ("training", 4),
        ("validation", 4),
        ("training", 6),
        ("checkpoint", None),
        ("training", 7),
        ("validation", 7),
        ("checkpoint", None),
    ]
    assert [index for _, index, _ in trial.batches] == list(range(7))


@pytest.mark.parametrize(
    ("aggregation", "batches", "average", "weight"),
    [(2, 2, None, 0.007), (1, 1, None, 0.001), (2, 2, False, 0.014), (4, 3, None, 0.0)],
)
def test_aggregation(aggregation, batches, average, weight):
    trial = train(aggregation=aggregation, arguments={"average": average}, max_length=Batch(batches))
    assert trial.weight == pytest.approx(weight)


def test_a_group_of_small_batches_is_one_large_batch():
    assert train(aggregation=2, max_length=Batch(2)).weight == pytest.approx(
        train(arguments={"batch": 4}, max_length=Batch(1)).weight
    )


@pytest.mark.parametrize(
    ("period", "reached"),
    [
        (Batch(3), [3, 6, 9, 12]),
        (Batch(0), list(range(1, 13))),
        (Batch([2, 5]), [2, 5]),
        (Batch(range(4, 6)), [4, 5]),
        (Epoch(1), [4, 8, 12]),
        (Epoch({2}), [8]),
    ],
)
def test_periods(reports, period, reached):
    train(arguments={"records": 8}, max_length=Batch(12), validation_period=period, checkpoint_policy="none")
    validation_steps = [steps for kind, steps in reports() if kind == "validation"]
    assert validation_steps == sorted({*reached, 12})


class Heard(pytorch.PyTorchCallback):
    def __init__(self, events):
        self.events = events

    def state_dict(self):
        return {"heard": len(self.events)}

    def load_state_dict(self, state_dict):
        self.events.append(("loaded", state_dict))


def _listening(name):
    def method(self, *arguments):
        self.events.append((name, *arguments))

    return method


for _name in vars(pytorch.PyTorchCallback):
    if _name.startswith("on_") and _name != "on_checkpoint_end":
        setattr(Heard, _name, _listening(_name))


class Listening(OneVar):
    def __init__(self, context, **arguments):
        super().__init__(context, **arguments)
        self.events = []

    def build_callbacks(self):
        self.events.append(("build",))
        return {"heard": Heard(self.events)}

    def build_training_data_loader(self):
        self.events.append(("training data",))
        return super().build_training_data_loader()


def test_methods_that_are_assigned_to_an_object_are_its_own():
    """As in 0.25, where no class was looked at: wrapped evaluations, and callbacks that hand on."""
    validations = []

    class Assigned(OneVar):
        evaluate_batch = pytorch.PyTorchTrial.evaluate_batch

        def __init__(self, context):
            super().__init__(context)
            self.evaluate_batch = functools.partial(OneVar.evaluate_batch, self)

        def build_callbacks(self):
            callback = pytorch.PyTorchCallback()
            callback.on_validation_end = validations.append
            return {"assigned": callback}

    train(Assigned, max_length=Batch(2), checkpoint_policy="none")
    assert [list(metrics) for metrics in validations] == [["validation_loss"]]


def test_callbacks_in_their_order():
    trial = train(Listening, arguments={"records": 4}, max_length=Epoch(2))
    names = [event[0] for event in trial.events]
    assert names == [
        "build",
        "on_trial_startup",
        "training data",
        "on_training_start",
        "on_training_epoch_start",
        "on_training_epoch_end",
        "on_training_epoch_start",
        "on_training_epoch_end",
        "on_training_workload_end",
        "on_validation_start",
        "on_validation_epoch_start",
        "on_validation_epoch_end",
        "on_validation_end",
        "on_checkpoint_save_start",
        "on_checkpoint_write_end",
        "on_checkpoint_upload_end",
        "on_trial_shutdown",
    ]
    assert trial.events[1] == ("on_trial_startup", 0, None)


@pytest.mark.parametrize(
    ("fit", "counts"),
    [
        ({}, (1, 1, 1)),
        ({"validation_period": Batch(32)}, (2, 2, 2)),
        ({"checkpoint_period": Batch(32)}, (2, 1, 2)),
    ],
)
def test_how_often_callbacks_are_called(fit, counts):
    trial = train(Listening, max_length=Epoch(2), **fit)
    names = [event[0] for event in trial.events]
    assert counts == tuple(
        names.count(f"on_{what}")
        for what in ("training_workload_end", "validation_end", "checkpoint_upload_end")
    )
    assert names.count("on_training_epoch_start") == names.count("on_training_epoch_end") == 2


def test_a_deprecated_callback_warns():
    class Old(pytorch.PyTorchCallback):
        def on_checkpoint_end(self, checkpoint_dir):
            pass

    class Trial(OneVar):
        def build_callbacks(self):
            return {"old": Old()}

    with pytest.warns(FutureWarning, match="on_checkpoint_write_end"):
        train(Trial)


def test_shutdown_callbacks_run_after_an_error():
    class Broken(Listening):
        def train_batch(self, batch, epoch_idx, batch_idx):
            raise OSError("the disk is on fire")

    trials = []

    class Keeping(Broken):
        def __init__(self, context):
            super().__init__(context)
            trials.append(self)

    with pytest.raises(OSError, match="on fire"):
        train(Keeping)
    assert trials[0].events[-1] == ("on_trial_shutdown",)


class FailingAtTheEnd(pytorch.PyTorchCallback):
    def on_trial_shutdown(self):
        raise ValueError("nothing to close")


@pytest.mark.parametrize("ending", [OSError("on fire"), errors.InvalidHP("too large"), None])
def test_a_failing_shutdown_does_not_hide_what_ended_the_training(ending, caplog):
    class Broken(OneVar):
        def build_callbacks(self):
            return {"failing": FailingAtTheEnd()}

        def train_batch(self, batch, epoch_idx, batch_idx):
            if ending is not None:
                raise ending
            return super().train_batch(batch, epoch_idx, batch_idx)

    # InvalidHP leaves the context as a success, so that the trial is not tried again.
    with pytest.raises((OSError, SystemExit, ValueError)) as left:
        train(Broken)
    expected = SystemExit if isinstance(ending, errors.InvalidHP) else type(ending or ValueError())
    assert left.type is expected
    message = f"the end of the training failed, too, after {ending!r}: ValueError('nothing to close')"
    assert (message in caplog.messages) == (ending is not None)


def test_test_mode(reports):
    trial = train(max_length=Epoch(3), test_mode=True)
    assert reports() == [("training", 1), ("validation", 1), ("checkpoint", None)]
    assert len(trial.batches) == 1


def test_a_stop_on_request(reports):
    class Stopping(OneVar):
        def train_batch(self, batch, epoch_idx, batch_idx):
            if batch_idx == 2:
                self.context.set_stop_requested(True)
            return super().train_batch(batch, epoch_idx, batch_idx)

    trial = train(Stopping, max_length=Batch(50), reporting_period=Batch(5))
    assert len(trial.batches) == 5
    assert reports() == [("training", 5), ("checkpoint", None)]


def test_invalid_hyperparameters_end_the_trial(reports):
    uploaded = []

    class Uploads(pytorch.PyTorchCallback):
        def on_checkpoint_upload_end(self, uuid):
            uploaded.append(uuid)

    class Bad(OneVar):
        def build_callbacks(self):
            return {"uploads": Uploads()}

        def train_batch(self, batch, epoch_idx, batch_idx):
            if batch_idx == 2:
                raise errors.InvalidHP("too large")
            return super().train_batch(batch, epoch_idx, batch_idx)

    with pytest.raises(SystemExit) as left:
        train(Bad)
    assert left.value.code == 0
    assert ("checkpoint", None) in reports()
    assert len(uploaded) == 1


class NoModel(OneVar):
    def __init__(self, context):
        self.context = context


class Both(OneVar):
    def evaluate_full_dataset(self, data_loader):
        return {}


class Neither(OneVar):
    evaluate_batch = pytorch.PyTorchTrial.evaluate_batch


class ForeignLoader(OneVar):
    def build_training_data_loader(self):
        return torch.utils.data.DataLoader([1, 2])


class EmptyValidation(OneVar):
    def build_validation_data_loader(self):
        return pytorch.DataLoader([], 2)


class Nothing(OneVar):
    def train_batch(self, batch, epoch_idx, batch_idx):
        return None


class Changing(OneVar):
    def train_batch(self, batch, epoch_idx, batch_idx):
        return {"loss": 1.0} if batch_idx < 2 else {"cost": 1.0}


class ChangingValidation(OneVar):
    def evaluate_batch(self, batch, batch_idx):
        return {"a" if batch_idx else "b": 1.0}


class BadReducer(OneVar):
    def evaluation_reducer(self):
        return {"other": pytorch.Reducer.SUM}


class ShortLoader(OneVar):
    def __init__(self, context):
        super().__init__(context)
        context.experimental.disable_dataset_reproducibility_checks()

    def build_training_data_loader(self):
        return []


class NoRecords(OneVar):
    def build_training_data_loader(self):
        return pytorch.DataLoader([], 2)


class FewerThanABatch(OneVar):
    def build_training_data_loader(self):
        return pytorch.DataLoader([1.0], 2, shuffle=True, drop_last=True)


class OnePassOnly(OneVar):
    def build_training_data_loader(self):
        return pytorch.DataLoader(Ones(2), sampler=iter([0, 1]))


class NoCallbacks(OneVar):
    def build_callbacks(self):
        pass


class ListOfCallbacks(OneVar):
    def build_callbacks(self):
        return [pytorch.PyTorchCallback()]


class ClassForCallback(OneVar):
    def build_callbacks(self):
        return {"early": pytorch.PyTorchCallback}


class NoNumber(OneVar):
    def evaluate_batch(self, batch):
        return {"accuracy": 1.0, "f1": None}


class Ragged(OneVar):
    def evaluate_batch(self, batch, batch_idx):
        return {"each": torch.ones(1 + batch_idx)}


@pytest.mark.parametrize(
    ("kind", "fit", "error", "text"),
    [
        (NoModel, {}, errors.InvalidExperimentException, "0 models"),
        (Both, {}, errors.InvalidExperimentException, "both"),
        (Neither, {}, errors.InvalidExperimentException, "none"),
        (ForeignLoader, {}, RuntimeError, "build_training_data_loader.*det.pytorch.DataLoader"),
        (EmptyValidation, {}, RuntimeError, "empty"),
        (Nothing, {}, TypeError, "train_batch"),
        (Changing, {}, ValueError, "batch 2 lacks \\['loss'\\] and adds \\['cost'\\]"),
        (ChangingValidation, {}, ValueError, "batch 1"),
        (BadReducer, {}, errors.InvalidExperimentException, "evaluation_reducer"),
        (ShortLoader, {}, RuntimeError, "no batch"),
        (NoRecords, {}, RuntimeError, "build_training_data_loader.*no batch"),
        (FewerThanABatch, {"max_length": Epoch(1)}, RuntimeError, "no batch.*drop_last"),
        (OnePassOnly, {}, RuntimeError, "no batch in a whole pass"),
        (NoCallbacks, {}, TypeError, "build_callbacks.*must be a dict.*None"),
        (ListOfCallbacks, {}, TypeError, "build_callbacks.*must be a dict"),
        (ClassForCallback, {}, TypeError, "callback 'early' must be a PyTorchCallback object"),
        (NoNumber, {}, ValueError, "'f1'.*Reducer.AVG cannot combine"),
        (Ragged, {}, ValueError, "'each'.*Reducer.AVG cannot combine.*same shape"),
        (OneVar, {"max_length": None}, ValueError, "max_length"),
        (OneVar, {"max_length": 5}, TypeError, "pytorch.Batch"),
        (OneVar, {"max_length": Batch([1])}, TypeError, "container"),
        (OneVar, {"checkpoint_policy": "some"}, ValueError, "checkpoint_policy"),
    ],
)
def test_errors(kind, fit, error, text):
    with pytest.raises(error, match=text):
        train(kind, **fit)


def test_metrics_are_those_of_their_batch_whatever_the_script_does_to_its_tensors_later():
    windows, outputs = [], []

    class Told(pytorch.PyTorchCallback):
        def on_training_workload_end(self, avg_metrics, batch_metrics):
            windows.extend((b["weight"].item(), b["count"].item(), b["rows"].item()) for b in batch_metrics)

        def on_validation_epoch_end(self, output):
            outputs.extend((o["count"].item(), o["rows"].item()) for o in output)

    class Accumulating(OneVar):
        def __init__(self, context):
            super().__init__(context)
            self.count, self.rows, self.weights = torch.zeros(()), np.zeros(1), []

        def counted(self):
            self.count += 1
            self.rows += 2
            return {"count": self.count, "rows": self.rows}

        def train_batch(self, batch, epoch_idx, batch_idx):
            super().train_batch(batch, epoch_idx, batch_idx)
            self.weights.append(self.weight)
            return {"weight": self.model.weight, **self.counted()}

        def evaluate_batch(self, batch):
            return self.counted()

        def build_callbacks(self):
            return {"told": Told()}

    trial = train(Accumulating, max_length=Batch(3))
    assert windows == [(weight, i + 1, 2 * i + 2) for i, weight in enumerate(trial.weights)]
    assert outputs == [(4, 8), (5, 10), (6, 12), (7, 14)]


def test_a_users_loader_begins_again():
    class Own(OneVar):
        def __init__(self, context):
            super().__init__(context)
            context.experimental.disable_dataset_reproducibility_checks()

        def build_training_data_loader(self):
            return [(torch.tensor([[float(i)]]), torch.tensor([[0.0]])) for i in range(3)]

    trial = train(Own, max_length=Epoch(2), reporting_period=Batch(2))
    assert [first for *_, first in trial.batches] == [0, 1, 2, 0, 1, 2]
    assert [epoch for epoch, *_ in trial.batches] == [0, 0, 0, 1, 1, 1]


def test_the_trial_must_be_one():
    with pytorch.init() as context, pytest.raises(TypeError, match="PyTorchTrial"):
        pytorch.Trainer(object(), context)


def test_the_profiler_is_for_clusters(caplog):
    with pytorch.init() as context:
        trainer = pytorch.Trainer(OneVar(context), context)
        trainer.configure_profiler(sync_timings=True, enabled=True, begin_on_batch=0, end_after_batch=1)
    assert "no effect off cluster" in caplog.text


def test_events_need_tensorboard_only_where_it_is(caplog, folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytorch.init() as context:
            pytorch.Trainer(OneVar(context), context).fit(max_length=Batch(2))
    written = list((folder / "data" / "determined" / "tensorboard").rglob("*tfevents*"))
    assert written or caplog.text.count("no TensorBoard events are written") == 1
