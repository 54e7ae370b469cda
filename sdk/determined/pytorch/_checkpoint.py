"""Writes and reads the content of a trial's checkpoint (Trainer spec, sections 12 and 13)."""

from __future__ import annotations

import json
import logging
import pathlib
import pickle
import random
from typing import Any

import msgspec
import numpy as np
import torch

from determined import __version__
from determined._training.counters import Counters
from determined.pytorch._context import PyTorchTrialContext

logger = logging.getLogger("determined.pytorch")
STATE, TRIAL_STATE, LOAD_DATA = "state_dict.pth", "trial_state.pkl", "load_data.json"
RESUME = "resume.pth"
"""State that each rank needs for an exact resume. Determined 0.25 does not have this file."""
_OLD_STATES = ("determined/state_dict.pth", "pedl/state_dict.pth", "checkpoint.pt")


class StoredCheckpoint(msgspec.Struct, frozen=True):
    """A checkpoint that was read but not yet applied."""

    state: dict[str, Any]
    counters: dict[str, Any]
    resume: dict[str, Any]


def metadata(steps: int) -> dict[str, Any]:
    """Return the metadata for the registry."""
    return {
        "determined_version": __version__,
        "steps_completed": steps,
        "framework": f"torch-{torch.__version__}",
        "format": "pickle",
    }


# -- writing


def state_of(context: PyTorchTrialContext, callbacks: dict[str, Any]) -> dict[str, Any]:
    """Return the state of models, optimizers, schedulers, callbacks and random generators on this rank."""
    state: dict[str, Any] = {
        "models_state_dict": [_bare(model).state_dict() for model in context.models],
        "optimizers_state_dict": [optimizer.state_dict() for optimizer in context.optimizers],
        "lr_schedulers_state_dict": [scheduler.state_dict() for scheduler in context.lr_schedulers],
        "callbacks": callbacks,
        "rng_state": rng_state(),
    }
    if context._scaler is not None:
        state["scaler_state_dict"] = context._scaler.state_dict()
    return state


def rng_state() -> dict[str, Any]:
    """Return the states of all random generators of this process."""
    streams: dict[str, Any] = {
        "cpu_rng_state": torch.random.get_rng_state(),
        "np_rng_state": np.random.get_state(),
        "random_rng_state": random.getstate(),
    }
    if torch.cuda.is_available():
        streams["gpu_rng_state"] = torch.cuda.get_rng_state()
    return streams


def pending_gradients(context: PyTorchTrialContext) -> list[list[torch.Tensor | None]]:
    """Return the gradients of an incomplete aggregation group, which only this rank has."""
    if context._stepping.ends_group:
        return []
    return [
        [None if p.grad is None else p.grad.detach().cpu() for p in model.parameters()]
        for model in context.models
    ]


def write(
    folder: pathlib.Path,
    state: dict[str, Any],
    counters: Counters,
    resume: dict[str, Any],
    load_data: dict[str, Any],
) -> None:
    """Write the files of a checkpoint, except its code."""
    torch.save(state, folder / STATE)
    torch.save(resume, folder / RESUME)
    # In the files and formats of Determined 0.25, for scripts that read them.
    (folder / TRIAL_STATE).write_bytes(pickle.dumps(msgspec.to_builtins(counters)))
    (folder / LOAD_DATA).write_text(json.dumps(load_data))


def _bare(model: torch.nn.Module) -> torch.nn.Module:
    # Without DDP's prefix in the names, so that any number of ranks can load it.
    inner: torch.nn.Module = (
        model.module if isinstance(model, torch.nn.parallel.DistributedDataParallel) else model
    )
    return inner


# -- reading


def read(folder: pathlib.Path, device: torch.device) -> StoredCheckpoint:
    """Read a checkpoint from our own storage, including older layouts. Its pickles are trusted."""
    path = next((folder / name for name in (STATE, *_OLD_STATES) if (folder / name).exists()), None)
    if path is None:
        raise RuntimeError(f"{folder} holds no checkpoint of a PyTorchTrial: {STATE} is missing")
    # On the CPU: the GPU of the rank that wrote it may not exist here, and the weights would be on the GPU
    # twice.
    state = _modern(torch.load(path, map_location="cpu", weights_only=False))
    resume = folder / RESUME
    return StoredCheckpoint(
        state,
        read_counters(folder),
        torch.load(resume, map_location="cpu", weights_only=False) if resume.exists() else {},
    )


def read_counters(folder: pathlib.Path) -> dict[str, Any]:
    """Read `trial_state.pkl`, or its predecessor."""
    for name in (TRIAL_STATE, "workload_sequencer.pkl"):
        path = folder / name
        if path.exists():
            counters: dict[str, Any] = pickle.loads(path.read_bytes())
            if "batches_trained" not in counters:
                counters["batches_trained"] = counters.get("steps_completed", 0)
            return counters
    return {}


_SINGLE = {
    "model_state_dict": "models_state_dict",
    "optimizer_state_dict": "optimizers_state_dict",
    "lr_scheduler": "lr_schedulers_state_dict",
}


def _modern(state: dict[str, Any]) -> dict[str, Any]:
    # Old releases saved a single model, optimizer and scheduler, without lists.
    for old, new in _SINGLE.items():
        if old in state and new in state:
            raise RuntimeError(f"the checkpoint holds both {old} and {new}")
        if old in state:
            state[new] = [state.pop(old)]
    return state


def load_models(models: list[Any], states: list[dict[str, Any]]) -> None:
    """Load the weights into the models. Raises RuntimeError if they do not match."""
    if len(models) != len(states):
        raise RuntimeError(f"the checkpoint holds {len(states)} models, the trial wraps {len(models)}")
    for model, state in zip(models, states, strict=True):
        _bare(model).load_state_dict(_without_prefix(state))


def _without_prefix(state: dict[str, Any]) -> dict[str, Any]:
    """Remove the name prefix that DDP adds."""
    if state and all(name.startswith("module.") for name in state):
        return {name.removeprefix("module."): value for name, value in state.items()}
    return state


def apply(context: PyTorchTrialContext, checkpoint: StoredCheckpoint) -> None:
    """Restore everything except callbacks and counters."""
    state = checkpoint.state
    load_models(context.models, state["models_state_dict"])
    for name, parts in (
        ("optimizers_state_dict", context.optimizers),
        ("lr_schedulers_state_dict", context.lr_schedulers),
    ):
        for part, saved in zip(parts, state.get(name, ()), strict=False):
            part.load_state_dict(saved)  # type: ignore[attr-defined]
    _load_scaler(context, state)
    _load_gradients(context, checkpoint.resume)
    _load_random_state(context, checkpoint)


def _load_scaler(context: PyTorchTrialContext, state: dict[str, Any]) -> None:
    saved = state.get("scaler_state_dict")
    if context._scaler is not None and saved:
        context._scaler.load_state_dict(saved)
    elif context._scaler is not None:
        logger.warning(
            "the checkpoint holds no state of the gradient scaler: it starts with its initial scale"
        )
    elif saved is not None:
        logger.warning("the checkpoint holds the state of a gradient scaler, which this trial does not use")


def _mine(context: PyTorchTrialContext, parts: list[Any] | None) -> Any:
    """Return the part that this rank wrote, if the number of ranks is unchanged."""
    # Each rank has random states and gradients of its own, which fit only the same number of ranks.
    distributed = context.distributed
    return parts[distributed.rank] if parts and len(parts) == distributed.size else None


def _load_gradients(context: PyTorchTrialContext, resume: dict[str, Any]) -> None:
    each = resume.get("gradients")
    if not each or not each[0]:
        return
    mine = _mine(context, each)
    if mine is None:
        logger.warning("gradients of an unfinished group are lost: the number of ranks has changed")
        return
    for model, gradients in zip(context.models, mine, strict=True):
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter.grad = None if gradient is None else gradient.to(parameter.device)


def _load_random_state(context: PyTorchTrialContext, checkpoint: StoredCheckpoint) -> None:
    saved = _mine(context, checkpoint.resume.get("rng_states")) or checkpoint.state.get("rng_state")
    if saved is None:
        logger.warning("the checkpoint holds no random state: the resumed run draws other random numbers")
        return
    restore_rng_state(saved)


def restore_rng_state(saved: dict[str, Any]) -> None:
    """Restore the states of the random generators."""
    torch.random.set_rng_state(saved["cpu_rng_state"])
    np.random.set_state(saved["np_rng_state"])
    random.setstate(saved["random_rng_state"])
    if torch.cuda.is_available() and "gpu_rng_state" in saved:
        torch.cuda.set_rng_state(saved["gpu_rng_state"])
    elif torch.cuda.is_available():
        logger.warning("the checkpoint holds no random state of a GPU")
