"""Draws a trial: hyperparameters, request id, seed, in this order (searchers spec, section 2)."""

from __future__ import annotations

from typing import Any

from det_contracts.expconf import is_group
from services.searcher.methods.protocol import Create, MethodError
from services.searcher.methods.rng import Rng


def sample(space: dict[str, Any], rng: Rng) -> dict[str, Any]:
    """One value for each hyperparameter, names ascending, groups depth-first."""
    # Sorted, because each value draws from one stream: another order of a dictionary would give another
    # search.
    return {name: sample_value(space[name], rng) for name in sorted(space)}


def sample_value(spec: Any, rng: Rng) -> Any:
    """A value for one hyperparameter."""
    if is_group(spec):
        return sample(spec, rng)
    if not isinstance(spec, dict):
        return spec
    match spec["type"]:
        case "const":
            return spec["val"]
        case "int":
            return int(spec["minval"]) + rng.below(int(spec["maxval"]) - int(spec["minval"]) + 1)
        case "double":
            return rng.uniform(spec["minval"], spec["maxval"])
        case "log":
            return float(spec["base"] ** rng.uniform(spec["minval"], spec["maxval"]))
        case "categorical":
            return spec["vals"][rng.below(len(spec["vals"]))]
        case other:
            raise MethodError(f"unknown hyperparameter type '{other}'")


def draw_trial(space: dict[str, Any], rng: Rng) -> Create:
    """Draw a trial from the space."""
    hparams = sample(space, rng)
    return create_with(hparams, rng)


def create_with(hparams: dict[str, Any], rng: Rng) -> Create:
    """A trial with given hyperparameters."""
    request_id = rng.request_id()
    return Create(request_id, rng.below(1 << 31), hparams)
