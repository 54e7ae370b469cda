"""What a checkpoint of a TFKerasTrial holds, written and read."""

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
    """What the registry knows of the checkpoint."""
    return {
        "determined_version": __version__,
        "steps_completed": steps,
        "framework": f"keras-{keras.__version__}-{keras.backend.backend()}",
        "format": "saved_weights",
    }


def write(folder: pathlib.Path, model: Any, counters: Counters, state: dict[str, Any]) -> None:
    """The files of a checkpoint but for its code; `state` is what this module does not know of."""
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
    """What `load_model_from_checkpoint_path` needs."""
    kind = type(trial)
    load_data = {
        "trial_type": "TFKerasTrial",
        "experiment_config": settings.exp_conf,
        "hparams": settings.hparams,
        "trial_cls_spec": f"{kind.__module__}:{kind.__qualname__}",
    }
    (folder / LOAD_DATA).write_text(json.dumps(load_data))


def read(folder: pathlib.Path) -> dict[str, Any]:
    """The state of a checkpoint; RuntimeError for one of something else."""
    path = folder / STATE
    if not path.exists() or not (folder / WEIGHTS).exists():
        raise RuntimeError(
            f"{folder} holds no checkpoint of a TFKerasTrial of this library: {WEIGHTS} or {STATE} is "
            "missing. Those that Keras 2 wrote cannot be continued: load their weights in build_model()"
        )
    counters: dict[str, Any] = pickle.loads(path.read_bytes())
    return counters


def load(folder: pathlib.Path, model: Any, state: dict[str, Any]) -> None:
    """Restore weights, the optimizer and what draws random numbers; the model must be built."""
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None and not optimizer.built:
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
    """Variables that `save_weights` leaves out: the states of what draws random numbers."""
    saved = {id(variable) for variable in model.weights}
    return [variable for variable in model.variables if id(variable) not in saved]


def _unsaved_values(model: Any) -> list[Any]:
    return [keras.ops.convert_to_numpy(variable) for variable in _unsaved(model)]


# -- random generators outside of the model


def random_state() -> dict[str, Any]:
    """States of the random generators of this process that are not part of a model."""
    states: dict[str, Any] = {"numpy": np.random.get_state(), "python": random.getstate()}
    torch = sys.modules.get("torch")
    if torch is not None:
        states["torch"] = torch.random.get_rng_state().numpy()
        if torch.cuda.is_available():
            states["cuda"] = torch.cuda.get_rng_state().numpy()
    return states


def restore_random_state(saved: dict[str, Any]) -> None:
    """Continue the streams of a checkpoint."""
    np.random.set_state(saved["numpy"])
    random.setstate(saved["python"])
    torch = sys.modules.get("torch")
    if torch is not None and "torch" in saved:
        torch.random.set_rng_state(torch.from_numpy(saved["torch"]))
        if torch.cuda.is_available() and "cuda" in saved:
            torch.cuda.set_rng_state(torch.from_numpy(saved["cuda"]))
