"""The fields that may change during an experiment (experiment configuration spec, section 4)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from det_contracts.expconf.complete import ROOT, fill_defaults, normalize
from det_contracts.expconf.faults import COMPLETENESS, Faults

BLANK = "`name` must not be an empty or whitespace string"
LIVE_FIELDS = (
    "name",
    "description",
    "labels",
    "resources.max_slots",
    "resources.weight",
    "resources.priority",
    "resources.resource_pool",
    "checkpoint_storage.save_experiment_best",
    "checkpoint_storage.save_trial_best",
    "checkpoint_storage.save_trial_latest",
)


def revise(config: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a live change, given by dotted field such as `{"resources.max_slots": 4}`, to a configuration.

    A value of None unsets the field. Raises `ConfigErrors` for fields that are fixed after submission and for
    invalid values.
    """
    faults = Faults()
    for field in changes:
        if field not in LIVE_FIELDS:
            faults.add(f"{ROOT}.{field}", "cannot be changed after submit")
    faults.errors += [message for field, value in changes.items() for message in _refusals(field, value)]
    faults.raise_any(COMPLETENESS)
    revised = copy.deepcopy(dict(config))
    for field, value in changes.items():
        *above, last = field.split(".")
        (revised[above[0]] if above else revised)[last] = value
    # Everything is checked again, because a rule may compare a changed field with one that stays.
    return fill_defaults(normalize(revised))


def _refusals(field: str, value: object) -> list[str]:
    if field == "name" and isinstance(value, str) and not value.strip():
        return [BLANK]
    # A submission with 0 is accepted as in 0.25 and counts as 1; a change to 0 is meant to take the share
    # away, which it would not do.
    if field == "resources.weight" and isinstance(value, (int, float)) and value <= 0:
        return [f"{ROOT}.{field}: weight must be greater than 0, not {value}"]
    return []
