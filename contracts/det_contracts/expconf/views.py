"""Typed access to a completed configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

Device = Literal["cpu", "cuda", "rocm"]
DEFAULT_SHM_SIZE = 4 * 1024**3


class Resources(msgspec.Struct, frozen=True):
    """The resources that each trial requests (experiment configuration spec, section 2.5)."""

    slots_per_trial: int
    """Number of slots per trial; 0 means CPU only."""
    max_slots: int | None
    """Maximum number of slots of all trials together; None means no limit."""
    resource_pool: str
    """Empty means the default pool."""
    priority: int | None
    """1 to 99, smaller numbers first; None means the pool's default."""
    weight: float
    """Fair share weight."""
    shm_size: int
    """Shared memory of a task in bytes."""


class Retention(msgspec.Struct, frozen=True):
    """How many checkpoints are kept (experiment configuration spec, section 2.4)."""

    save_experiment_best: int
    save_trial_best: int
    save_trial_latest: int


def resources(config: Mapping[str, Any]) -> Resources:
    """Return the resources of a completed configuration."""
    section = config["resources"]
    size = DEFAULT_SHM_SIZE if section["shm_size"] is None else section["shm_size"]
    return msgspec.convert(section | {"shm_size": size}, Resources)


def retention(config: Mapping[str, Any]) -> Retention:
    """Return the checkpoint retention of a completed configuration."""
    return msgspec.convert(config["checkpoint_storage"], Retention)


def environment_variables(config: Mapping[str, Any], device: Device) -> dict[str, str | None]:
    """Return the user's variables for a device; later entries win. None stands for a name without `=`."""
    entries = config["environment"]["environment_variables"][device]
    split = (entry.partition("=") for entry in entries)
    return {name: value if equals else None for name, equals, value in split}
