"""Loads models from checkpoints outside training, for inspection or inference."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import keras

from determined import core
from determined._training.code import trial_class
from determined._training.settings import Settings
from determined.keras import _checkpoint
from determined.keras._context import TFKerasTrialContext
from determined.keras._trial import TFKerasTrial


def load_model_from_checkpoint_path(path: str, tags: list[str] | None = None) -> keras.Model:
    """Return the model of a downloaded checkpoint, with its weights.

    The trial's class is imported from the code in the checkpoint, and its `build_model()` is called with the
    trial's hyperparameters.

    Args:
        path: Directory of the checkpoint, as returned by `Checkpoint.download()`.
        tags: Option for models in TensorFlow's own format. It has no effect.

    Returns:
        The compiled model.

    Raises:
        AssertionError: If the directory is not the checkpoint of a TFKerasTrial.
        ValueError: If the trial's class cannot be imported.

    Example:
        ```python
        checkpoint = client.get_trial(7).top_checkpoint()
        model = keras.load_model_from_checkpoint_path(checkpoint.download())
        model.predict(x)            # x: (records, ...) as the model takes it
        ```
    """
    folder = pathlib.Path(path)
    if not (folder / _checkpoint.LOAD_DATA).exists():
        raise AssertionError(
            f"{folder} holds no {_checkpoint.LOAD_DATA}: it is not the checkpoint of a TFKerasTrial"
        )
    load_data = json.loads((folder / _checkpoint.LOAD_DATA).read_text())
    if load_data.get("trial_type") != "TFKerasTrial":
        raise AssertionError(
            f"{folder} is a checkpoint of a {load_data.get('trial_type')}, not of a TFKerasTrial"
        )
    context = TFKerasTrialContext(
        core._dummy_init(), Settings(load_data.get("hparams"), load_data.get("experiment_config"), 1)
    )
    trial = trial_class(folder, str(load_data["trial_cls_spec"]))(context)
    model = trial.build_model()
    if not model.built:
        batch = _first_batch(trial, context)
        # A subclassed model learns its shapes, and so makes its weights, from the first batch.
        model.test_on_batch(*keras.utils.unpack_x_y_sample_weight(batch))
    optimizer = model.optimizer
    if optimizer is not None and not optimizer.built:
        # Otherwise Keras warns that it cannot load the state of the optimizer, which looks like a failure.
        optimizer.build(model.trainable_variables)
    model.load_weights(folder / _checkpoint.WEIGHTS)
    return model


def _first_batch(trial: TFKerasTrial, context: TFKerasTrialContext) -> Any:
    from determined.keras._data import Reading, adapt

    sizes = context._settings._sizes
    data = adapt(
        trial.build_validation_data_loader(),
        Reading(sizes[0] if sizes else None, False, 1, 1),
        0,
        "build_validation_data_loader",
    )
    return next(data.once(0, 1))
