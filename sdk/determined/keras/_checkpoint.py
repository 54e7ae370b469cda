"""Writes and reads the checkpoints of a TFKerasTrial."""

from __future__ import annotations

import json
import logging
import pathlib
import pickle
import random
import sys
from typing import Any

import keras
import msgspec
import numpy as np

from determined import __version__
from determined._training.counters import Counters

logger = logging.getLogger("determined.keras")
WEIGHTS, MODEL, STATE, LOAD_DATA = "model.weights.h5", "model.json", "trial_state.pkl", "load_data.json"


def metadata(steps: int) -> dict[str, Any]:
    """Return the metadata for the registry."""
    return {
        "determined_version": __version__,
        "steps_completed": steps,
        "framework": f"keras-{keras.__version__}-{keras.backend.backend()}",
        "format": "saved_weights",
    }


def write(folder: pathlib.Path, model: Any, counters: Counters, state: dict[str, Any]) -> None:
    """Write the files of a checkpoint except its code. `state` is additional state from the caller."""
    model.save_weights(folder / WEIGHTS)
    _write_structure(folder, model)
    whole = {"counters": msgspec.to_builtins(counters), "unsaved": _unsaved_values(model), **state}
    (folder / STATE).write_bytes(pickle.dumps(whole))


def _write_structure(folder: pathlib.Path, model: Any) -> None:
    try:
        (folder / MODEL).write_text(model.to_json())
    except Exception as error:  # A subclassed model has no structure; its code rebuilds it.
        logger.debug("the structure of the model cannot be written: %s", error)


def write_load_data(folder: pathlib.Path, trial: Any, settings: Any) -> None:
    """Write the data that `load_model_from_checkpoint_path` needs."""
    kind = type(trial)
    load_data = {
        "trial_type": "TFKerasTrial",
        "experiment_config": settings.exp_conf,
        "hparams": settings.hparams,
        "trial_cls_spec": f"{kind.__module__}:{kind.__qualname__}",
    }
    (folder / LOAD_DATA).write_text(json.dumps(load_data))


def read(folder: pathlib.Path) -> dict[str, Any]:
    """Read the state of a checkpoint. Raises RuntimeError if it is not a TFKerasTrial's."""
    path = folder / STATE
    if not path.exists() or not (folder / WEIGHTS).exists():
        raise RuntimeError(
            f"{folder} holds no checkpoint of a TFKerasTrial of this library: {WEIGHTS} or {STATE} is "
            "missing. Those that Keras 2 wrote cannot be continued: load their weights in build_model()"
        )
    counters: dict[str, Any] = pickle.loads(path.read_bytes())
    return counters


def load(folder: pathlib.Path, model: Any, state: dict[str, Any]) -> None:
    """Restore weights, optimizer and random states. The model must be built."""
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None and not optimizer.built:
        # Before the weights are loaded: an optimizer that is not built has no variables to load into.
        optimizer.build(model.trainable_variables)
    model.load_weights(folder / WEIGHTS)
    unsaved = _unsaved(model)
    values = state.get("unsaved") or []
    if len(values) != len(unsaved):
        logger.warning("the checkpoint holds a different number of random states: they start fresh")
        return
    for variable, value in zip(unsaved, values, strict=True):
        variable.assign(value)


def _unsaved(model: Any) -> list[Any]:
    """Return the variables that `save_weights` omits: the states of random generators."""
    saved = {id(variable) for variable in model.weights}
    return [variable for variable in model.variables if id(variable) not in saved]


def _unsaved_values(model: Any) -> list[Any]:
    return [keras.ops.convert_to_numpy(variable) for variable in _unsaved(model)]


# -- random generators outside the model


def random_state() -> dict[str, Any]:
    """Return the states of this process's random generators that are not part of a model."""
    states: dict[str, Any] = {"numpy": np.random.get_state(), "python": random.getstate()}
    torch = sys.modules.get("torch")
    if torch is not None:
        states["torch"] = torch.random.get_rng_state().numpy()
        if torch.cuda.is_available():
            states["cuda"] = torch.cuda.get_rng_state().numpy()
    return states


def restore_random_state(saved: dict[str, Any]) -> None:
    """Restore random generator states from a checkpoint."""
    np.random.set_state(saved["numpy"])
    random.setstate(saved["python"])
    torch = sys.modules.get("torch")
    if torch is not None and "torch" in saved:
        torch.random.set_rng_state(torch.from_numpy(saved["torch"]))
        if torch.cuda.is_available() and "cuda" in saved:
            torch.cuda.set_rng_state(torch.from_numpy(saved["cuda"]))
