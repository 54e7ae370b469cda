"""A TFKerasTrial is trained, stopped and continued; what a script may rely on."""

import importlib
import pathlib
import warnings

import keras
import numpy as np
import pytest

from determined._training.plan import Plan
from determined._training.units import Batch, Epoch
from determined.errors import InvalidExperimentException
from determined.keras import TFKerasTrialContext, callbacks, load_model_from_checkpoint_path
from determined.keras._entry import train_here, try_locally
from tests.fixtures.tiers import rest_in_full
from tests.sdk.keras.trials import FromSequence, Random, Unbuilt, X, Y

HPARAMS = {"global_batch_size": 4}
CONFIG = {"reproducibility": {"experiment_seed": 11}}
TOTAL = 14


def run(kind, *, config=CONFIG, **options):
    return train_here(kind, HPARAMS, config, Plan(**{"max_length": Batch(TOTAL), **options}, legacy=True))


def stored(folder):
    return sorted(
        (folder / "data" / "determined").rglob("trial_state.pkl"), key=lambda p: p.stat().st_mtime_ns
    )


def weights(trial):
    return np.concatenate([w.ravel() for w in trial.model.get_weights()])


def test_windows_epochs_validations_and_checkpoints(folder):
    trial = run(
        Random,
        max_length=Epoch(2),
        reporting_period=Batch(5),
        validation_period=Batch(6),
        checkpoint_period=Batch(8),
    )
    recorder = trial.recorder
    assert [at for at, _ in recorder.windows] == [5, 6, 8, 10, 12]
    assert [batch for batch, _ in recorder.batches] == [*range(6), *range(6)]
    assert recorder.epochs == [("begin", 0), ("end", 0, {}), ("begin", 1), ("end", 1, {})]
    assert [sorted(metrics) for metrics in recorder.tests] == [["loss", "mae"]] * 2
    assert len(recorder.folders) == len(stored(folder)) == 2
    # A window's metric is the mean over its batches, each batch's its own.
    assert recorder.windows[0][1] == pytest.approx(np.mean(trial.losses[:5]))


def test_a_validation_is_over_all_records_alike():
    class Uneven(Random):
        def build_validation_data_loader(self):
            return X[:6], Y[:6]  # a batch of 4 and one of 2

    trial = run(Uneven, max_length=Batch(1))
    expected = float(np.mean(np.abs(trial.model.predict(X[:6], verbose=0) - Y[:6])))
    assert trial.recorder.tests[-1]["mae"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("kind", [Random, Unbuilt, FromSequence])
@pytest.mark.parametrize("stop", rest_in_full([6, 1, 9]))
def test_stopped_at_any_batch_and_resumed_it_is_the_run_that_was_never_stopped(kind, stop, folder):
    class Stopping(kind):
        def keras_callbacks(self):
            trial = self

            class Stop(callbacks.Callback):
                def on_train_batch_end(self, batch, logs=None):
                    if trial.context.current_train_batch() + 1 == stop:
                        trial.context.set_stop_requested(True)

            return [*super().keras_callbacks(), Stop()]

    options = {"reporting_period": Batch(1), "validation_period": Batch(4)}
    whole = run(kind, **options)
    first = run(Stopping, **options)
    uuid = stored(folder)[-1].parent.name
    np.random.seed(5)
    second = run(kind, latest_checkpoint=uuid, **options)
    assert len(first.losses) == stop
    assert first.losses + second.losses == whole.losses
    assert np.array_equal(weights(second), weights(whole))
    # What a callback gave into the checkpoint came back, before the first batch.
    assert second.recorder.windows == whole.recorder.windows


def test_each_epoch_has_every_record_once_in_an_order_of_its_own():
    class Keeping(Random):
        def build_model(self):
            model = super().build_model()
            self.records = []
            fit = model.train_on_batch

            def train_on_batch(x, *arguments, **named):
                self.records.append([round(float(feature) * len(X)) for feature in x[:, 0]])
                return fit(x, *arguments, **named)

            object.__setattr__(model, "train_on_batch", train_on_batch)
            return model

    records = run(Keeping, max_length=Epoch(2)).records
    first, second = ([record for batch in part for record in batch] for part in (records[:6], records[6:]))
    assert sorted(first) == sorted(second) == list(range(len(X)))
    assert first != second != sorted(second)


def test_early_stopping_counts_validations():
    class Stopping(Random):
        further = (callbacks.EarlyStopping(monitor="val_loss", patience=2, min_delta=1e9),)

    trial = run(Stopping, max_length=Batch(40), validation_period=Batch(2))
    # The first validation is an improvement, the second and third are none.
    assert trial.context.current_train_batch() + 1 == 6


def test_a_plateau_lowers_the_rate_and_survives_a_pause(folder):
    class Lowering(Random):
        def __init__(self, context):
            super().__init__(context)
            self.further = (
                callbacks.ReduceLROnPlateau(monitor="val_loss", factor=0.5, patience=2, min_delta=1e9),
            )

    options = {"validation_period": Batch(2), "reporting_period": Batch(100)}
    first = run(Lowering, max_length=Batch(4), **options)
    assert float(first.model.optimizer.learning_rate) == pytest.approx(0.05)
    uuid = stored(folder)[-1].parent.name
    second = run(Lowering, max_length=Batch(6), latest_checkpoint=uuid, **options)
    assert float(second.model.optimizer.learning_rate) == pytest.approx(0.025)


def test_a_checkpoint_gives_its_model_back(folder, monkeypatch):
    text = "from tests.sdk.keras.trials import Unbuilt\n\n\nclass MyTrial(Unbuilt):\n    pass\n"
    pathlib.Path("keras_model_def.py").write_text(text)
    monkeypatch.syspath_prepend(str(pathlib.Path.cwd()))
    trial = run(importlib.import_module("keras_model_def").MyTrial)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = load_model_from_checkpoint_path(str(stored(folder)[-1].parent))
    assert np.array_equal(model.predict(X, verbose=0), trial.model.predict(X, verbose=0))
    with pytest.raises(AssertionError, match="not the checkpoint of a TFKerasTrial"):
        load_model_from_checkpoint_path(str(folder))


def test_gradients_of_several_batches_make_one_step():
    class Twice(Random):
        def build_model(self):
            model = super().build_model()
            self.before = weights(self)
            return model

    config = CONFIG | {"optimizations": {"aggregation_frequency": 2}}
    one_batch = run(Twice, max_length=Batch(1), config=config)
    assert np.array_equal(weights(one_batch), one_batch.before)
    two_batches = run(Twice, max_length=Batch(2), config=config)
    assert not np.array_equal(weights(two_batches), two_batches.before)
    with pytest.raises(InvalidExperimentException, match="average_aggregated_gradients"):
        run(
            Twice,
            config={"optimizations": {"aggregation_frequency": 2, "average_aggregated_gradients": False}},
        )


def test_one_batch_is_tried_and_nothing_else(folder):
    made = []

    class Watched(Random):
        def __init__(self, context):
            super().__init__(context)
            made.append(self)

    try_locally(Watched, HPARAMS, CONFIG)
    assert [len(trial.losses) for trial in made] == [1]
    assert len(stored(folder)) == 1


class NotWrapped(Random):
    def build_model(self):
        model = keras.Sequential([keras.layers.Dense(1)])
        model.compile("sgd", loss="mse")
        return model


class NotCompiled(Random):
    def build_model(self):
        return self.context.wrap_model(keras.Sequential([keras.layers.Dense(1)]))


class TwoModels(Random):
    def build_model(self):
        self.context.wrap_model(keras.Sequential())
        return super().build_model()


@pytest.mark.parametrize(
    ("kind", "text"),
    [(NotWrapped, "wrap the model"), (NotCompiled, "model.compile"), (TwoModels, "one model")],
)
def test_a_model_that_cannot_be_trained(kind, text):
    with pytest.raises(InvalidExperimentException, match=text):
        run(kind)


def test_a_context_of_a_configuration():
    config = {
        "name": "n",
        "entrypoint": "model_def:MyTrial",
        "hyperparameters": {"global_batch_size": 8, "width": 5},
        "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": 3}},
    }
    context = TFKerasTrialContext.from_config(config)
    assert (context.get_hparam("width"), context.get_per_slot_batch_size()) == (5, 8)
    assert context.get_data_config() == {}
    with pytest.raises(InvalidExperimentException, match="call dataset"):
        context.experimental.cache_train_dataset("id", "1.0")


def test_keras_early_stopping_gets_a_hint_at_the_platforms_own(caplog):
    class Foreign(Random):
        further = (keras.callbacks.EarlyStopping(),)

    with pytest.warns(UserWarning, match="not available"):
        run(Foreign, max_length=Epoch(1))
    assert "determined.keras.callbacks.EarlyStopping" in caplog.text
