"""Optuna's TPE sampler as a function of its arguments. This is the only file that uses Optuna.

Equal arguments and equal versions of Optuna give equal proposals. Nothing relies on equal versions: the log
keeps what was proposed (docs/decisions/0007).
"""

from __future__ import annotations

import importlib.util
import math
import warnings
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import getitem
from typing import Any

import msgspec

from det_contracts.expconf import is_group, leaves

NOT_INSTALLED = (
    "the 'tpe' searcher needs the optuna package, which is not installed: pip install 'steadfast[tpe]'"
)

Path = tuple[str, ...]


class Point(msgspec.Struct, frozen=True, array_like=True):
    """A trial and its latest result. Smaller values are better here."""

    number: int
    """Its index among all points, in order of announcement."""
    hparams: dict[str, Any]
    length: int = 0
    """The length at which it had `value`."""
    value: float | None = None
    failed: bool = False
    """It gave up without a value."""


def is_installed() -> bool:
    """Whether proposals are possible."""
    return importlib.util.find_spec("optuna") is not None


def propose(space: dict[str, Any], points: Sequence[Point], max_length: int, seed: int) -> dict[str, Any]:
    """Return the hyperparameters to try next.

    A point trained to `max_length` counts as complete. Points that were stopped earlier rank behind all of
    these, better the further they got, and failed ones rank last. Running points repel proposals. Raises
    `ImportError` without Optuna.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    axes = {path: spec for path, spec in leaves(space) if _is_searched(spec)}
    ranges = {".".join(path): _distribution(spec) for path, spec in axes.items()}
    with warnings.catch_warnings():
        # Warnings about experimental options concern the authors of this code, not users.
        warnings.simplefilter("ignore")
        # No start-up trials of its own, since `TpeSearch` counts results and not trials. `constant_liar`
        # keeps parallel trials from all getting the same point.
        sampler = optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=0, multivariate=True, constant_liar=True
        )
        # A new study each time: nothing of an earlier proposal may influence this one.
        study = optuna.create_study(sampler=sampler)
        study.add_trials(_trials(axes, ranges, points, max_length))
        coordinates = study.ask(ranges).params
    return _to_hparams(space, coordinates)


def _is_searched(spec: Any) -> bool:
    return isinstance(spec, dict) and spec["type"] != "const"


def _distribution(spec: dict[str, Any]) -> Any:
    """The searched quantity: a number, the exponent of a log scale, or the index of a category."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    match spec["type"]:
        case "int":
            return IntDistribution(int(spec["minval"]), int(spec["maxval"]))
        case "categorical":
            return CategoricalDistribution(range(len(spec["vals"])))
        case _:
            return FloatDistribution(float(spec["minval"]), float(spec["maxval"]))


def _trials(
    axes: dict[Path, Any], ranges: dict[str, Any], points: Iterable[Point], max_length: int
) -> Iterable[Any]:
    from optuna.trial import TrialState, create_trial

    for point in points:
        try:
            params = {
                ".".join(path): _coordinate(spec, reduce(getitem, path, point.hparams))
                for path, spec in axes.items()
            }
        except (KeyError, ValueError, TypeError):
            # Announced with values outside the space: nothing can be learned from it.
            continue
        if point.value is None:
            state = TrialState.PRUNED if point.failed else TrialState.RUNNING
            yield create_trial(state=state, params=params, distributions=ranges)
        elif point.length >= max_length:
            yield create_trial(value=point.value, params=params, distributions=ranges)
        else:
            yield create_trial(
                state=TrialState.PRUNED,
                params=params,
                distributions=ranges,
                intermediate_values={point.length: point.value},
            )


def _coordinate(spec: dict[str, Any], value: Any) -> Any:
    """The inverse of `_value`."""
    match spec["type"]:
        case "categorical":
            return spec["vals"].index(value)
        case "log":
            value = math.log(value) / math.log(spec["base"])
    return min(max(value, spec["minval"]), spec["maxval"])


def _value(spec: dict[str, Any], coordinate: Any) -> Any:
    match spec["type"]:
        case "categorical":
            return spec["vals"][coordinate]
        case "log":
            return float(spec["base"] ** coordinate)
    return coordinate


def _to_hparams(space: dict[str, Any], coordinates: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Values for the whole space, including groups and constants."""
    values = {}
    for name in sorted(space):
        spec, path = space[name], prefix + name
        if is_group(spec):
            values[name] = _to_hparams(spec, coordinates, f"{path}.")
        elif _is_searched(spec):
            values[name] = _value(spec, coordinates[path])
        else:
            values[name] = spec["val"] if isinstance(spec, dict) else spec
    return values
