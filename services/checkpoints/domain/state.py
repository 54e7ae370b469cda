"""What the checkpoints service knows. All records are frozen: an event replaces one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from det_contracts.events.checkpoints import ModelSet, VersionSet
from services.checkpoints.retention import Keep
from services.kit.once import Made

Key = tuple[str, Any]
CheckpointState = Literal["COMPLETED", "PARTIALLY_DELETED", "DELETED", "ERROR"]
TRIES = 3
"""Tasks that try to delete a checkpoint before it is given up as ERROR: workers can be lost."""


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """What of an experiment matters to its checkpoints."""

    id: int
    keep: Keep
    smaller_is_better: bool
    source: str | None
    """Checkpoint that its trials started from."""
    trials: tuple[int, ...] = ()
    ended: bool = False
    pool: str = "default"
    deletions: int = 0
    """Tasks asked for so far."""
    deleting: bool = False
    """All its checkpoints shall go, whatever retention says."""
    ran: bool = False
    """A trial of it has run, and may have left event files in the storage."""
    sweeping: bool = False
    """A task was asked to delete what else it left in the storage, and is not over."""
    sweeps: int = 0
    """Tasks that were asked to do so and failed."""
    swept: bool = False
    retains: bool = True
    """Whether checkpoints go by themselves; of an unmanaged one only once somebody said how many stay."""


class Validation(msgspec.Struct, frozen=True):
    """A trial's validation at some number of steps."""

    metric: float | None
    number: int
    """Place in the order in which validations were accepted, over all trials."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What of a trial matters to its checkpoints."""

    id: int
    experiment_id: int
    settled: bool = False
    """It is over, and all its validations are known."""
    stored: tuple[str, ...] = ()
    """Its checkpoints, in the order they were stored."""
    validations: dict[int, Validation] = {}
    """By steps completed; once it is settled, only those at steps that have a checkpoint."""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint of the registry."""

    uuid: str
    trial_id: int
    experiment_id: int
    task_id: str
    allocation_id: str
    at: float
    """When it was reported; seconds since the epoch, UTC."""
    order: int
    """Position of the report in the log."""
    state: CheckpointState = "COMPLETED"
    resources: dict[str, int]
    metadata: dict[str, Any]
    steps_completed: int
    going: bool = False
    """A task was asked to delete it, and is not over."""
    tries: int = 0
    """Tasks that were asked to delete it."""
    reason: str = ""
    """Why it went, or could not."""
    versions: int = 0
    """Of models, that it is."""


class Deletion(msgspec.Struct, frozen=True, kw_only=True):
    """A task that deletes checkpoints, until its end is stated."""

    task_id: str
    experiment_id: int
    uuids: tuple[str, ...]
    globs: tuple[str, ...] | None = None
    sweep: bool = False
    why: str = ""
    outcome: str | None = None
    """How the task's run ended; None while it has not."""
    reason: str = ""


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A named line of checkpoints."""

    told: ModelSet
    versions: tuple[int, ...] = ()
    """Ids of those that are there."""
    numbers: int = 0
    """The highest number that was used."""


@dataclass
class State:
    """Everything that the checkpoints service folds out of the log."""

    experiments: dict[int, Experiment] = field(default_factory=dict)
    trials: dict[int, Trial] = field(default_factory=dict)
    checkpoints: dict[str, Checkpoint] = field(default_factory=dict)
    deletions: dict[str, Deletion] = field(default_factory=dict)
    models: dict[int, Model] = field(default_factory=dict)
    versions: dict[int, VersionSet] = field(default_factory=dict)
    creations: dict[str, Made] = field(default_factory=dict)
