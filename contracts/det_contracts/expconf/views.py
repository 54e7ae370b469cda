"""Typed answers about a completed configuration, for those who act on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

Device = Literal["cpu", "cuda", "rocm"]
DEFAULT_SHM_SIZE = 4 * 1024**3


class Resources(msgspec.Struct, frozen=True):
    """What each trial asks of the scheduler (experiment configuration spec, section 2.5)."""

    slots_per_trial: int
    """Slots of one trial; 0 means CPU only."""
    max_slots: int | None
    """Most slots of all trials together; None is no limit."""
    resource_pool: str
    """Empty for the default pool."""
    priority: int | None
    """1 to 99, smaller first; None is the default of the pool."""
    weight: float
    """Relative share under fair share."""
    shm_size: int
    """Shared memory of a task in bytes."""


class Retention(msgspec.Struct, frozen=True):
    """How many checkpoints stay (experiment configuration spec, section 2.4)."""

    save_experiment_best: int
    save_trial_best: int
    save_trial_latest: int


def resources(config: Mapping[str, Any]) -> Resources:
    """The resources of a completed configuration."""
    given = config["resources"]
    size = DEFAULT_SHM_SIZE if given["shm_size"] is None else given["shm_size"]
    return msgspec.convert(given | {"shm_size": size}, Resources)


def retention(config: Mapping[str, Any]) -> Retention:
    """The checkpoint retention of a completed configuration."""
    return msgspec.convert(config["checkpoint_storage"], Retention)


def environment_variables(config: Mapping[str, Any], device: Device) -> dict[str, str | None]:
    """The user's variables on a kind of device, later entries winning; None stands for a name without `=`."""
    entries = config["environment"]["environment_variables"][device]
    split = (entry.partition("=") for entry in entries)
    return {name: value if equals else None for name, equals, value in split}
