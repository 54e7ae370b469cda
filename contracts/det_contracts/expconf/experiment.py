"""The configuration schema: type, default and rules of each field (configuration spec, section 2)."""

from __future__ import annotations

from typing import Any

from det_contracts.expconf.composites import Field, ListOf, MapOf, Record, Rule, rule
from det_contracts.expconf.environment import ENVIRONMENT
from det_contracts.expconf.faults import Faults
from det_contracts.expconf.hyperparameters import HYPERPARAMETERS, is_group, leaves, report_uncounted
from det_contracts.expconf.length import PERIOD
from det_contracts.expconf.resources import RESOURCES
from det_contracts.expconf.scalars import (
    Anything,
    BadForm,
    Boolean,
    Choice,
    Ignored,
    Integer,
    MultiForm,
    Node,
    NullOnly,
    Text,
)
from det_contracts.expconf.searcher import SEARCHER, is_grid
from det_contracts.expconf.sections import (
    BIND_MOUNTS,
    LOG_POLICIES,
    OPTIMIZATIONS,
    PBS,
    PROFILING,
    SECURITY,
    SLURM,
)
from det_contracts.expconf.storage import CHECKPOINT_STORAGE, TENSORBOARD_STORAGE

EMPTY_GRID = "a grid search needs at least one hyperparameter, without any it would create no trial"
TWO_NAMES = "workspace and project must both be included in config if one is provided"
BAD_LABELS = "is neither a list of strings nor a map of strings to true or false"
BAD_ENTRYPOINT = "must be a string or a list of strings"


def union_of_labels(high: list[Any], low: list[Any]) -> list[Any]:
    """Return the union of two sets, sorted."""
    return sorted({*high, *low})


def normalize_labels(value: Any) -> Any:
    """Convert a list, or the old map of label to true or false, to a sorted list without duplicates."""
    if isinstance(value, dict) and all(isinstance(choice, bool | None) for choice in value.values()):
        value = [label for label, choice in value.items() if choice]
    if not isinstance(value, list) or not all(isinstance(label, str) for label in value):
        raise BadForm(BAD_LABELS)
    return sorted(set(value))


def check_entrypoint(value: Any) -> Any:
    """Check an entrypoint: a string, or a program with its arguments. Raises `BadForm`."""
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise BadForm(BAD_ENTRYPOINT)
    return value


def check_grid(config: dict[str, Any], at: str, faults: Faults) -> None:
    """Report what prevents a grid from being constructed."""
    if not is_grid(config):
        return
    hyperparameters = config.get("hyperparameters") or {}
    report_uncounted(hyperparameters, f"{at}.hyperparameters", faults)
    if faults.final and is_group(hyperparameters) and not any(leaves(hyperparameters)):
        faults.add(f"{at}.hyperparameters", EMPTY_GRID)


LABELS = MultiForm(normalize_labels, ListOf(Text(), union_of_labels))
ENTRYPOINT = MultiForm(check_entrypoint, Node())
REPRODUCIBILITY = Record({"experiment_seed": Field(Integer(0, 2**32 - 1), needed="finally")})

EXPERIMENT = Record(
    {
        "name": Field(Text(), needed="finally"),
        "description": Field(Text()),
        "labels": Field(LABELS, []),
        "data": Field(MapOf(Anything()), {}),
        "workspace": Field(Text(), ""),
        "project": Field(Text(), ""),
        "entrypoint": Field(ENTRYPOINT),
        "max_restarts": Field(Integer(0), 5),
        "scheduling_unit": Field(Integer(1), 100),
        "records_per_epoch": Field(Integer(0), 0),
        "min_validation_period": Field(PERIOD, {"batches": 0}),
        "perform_initial_validation": Field(Boolean(), False),
        "min_checkpoint_period": Field(PERIOD, {"batches": 0}),
        "checkpoint_policy": Field(Choice(("best", "all", "none")), "best"),
        "checkpoint_storage": Field(CHECKPOINT_STORAGE, needed="finally"),
        "hyperparameters": Field(HYPERPARAMETERS, {}),
        "searcher": Field(SEARCHER, needed="finally"),
        "resources": Field(RESOURCES, {}),
        "reproducibility": Field(REPRODUCIBILITY, {}),
        "environment": Field(ENVIRONMENT, {}),
        "bind_mounts": Field(BIND_MOUNTS, []),
        "profiling": Field(PROFILING, {}),
        "optimizations": Field(OPTIMIZATIONS, {}),
        "debug": Field(Boolean(), False),
        "log_policies": Field(LOG_POLICIES, []),
        "slurm": Field(SLURM, {}),
        "pbs": Field(PBS, {}),
        "security": Field(SECURITY),
        "tensorboard_storage": Field(Ignored(TENSORBOARD_STORAGE)),
        "data_layer": Field(Ignored(Anything())),
        "internal": Field(NullOnly()),
    },
    (
        rule(
            "workspace project",
            TWO_NAMES,
            lambda config: bool(config.get("workspace")) == bool(config.get("project")),
            final=True,
        ),
        Rule((), check_grid),
    ),
)
