"""What the checkpoints service decides: which checkpoints go, and why."""

from __future__ import annotations

import msgspec

from det_contracts.codec import event


@event("checkpoints.deletion.requested", key="task_id")
class DeletionRequested(msgspec.Struct, frozen=True, kw_only=True):
    """A zero-slot task shall delete these. The scheduler places it on a worker, which sees the storage."""

    task_id: str
    experiment_id: int
    uuids: tuple[str, ...]
    reason: str
    pool: str = "default"
    """Whose workers see the storage: the experiment's."""


@event("checkpoints.deletion.finished", key="task_id")
class DeletionFinished(msgspec.Struct, frozen=True, kw_only=True):
    """The task is over; when `deleted` the files are gone, else the checkpoints stay registered."""

    task_id: str
    experiment_id: int
    uuids: tuple[str, ...]
    deleted: bool
    reason: str


@event("checkpoints.experiment.emptied", key="experiment_id")
class ExperimentEmptied(msgspec.Struct, frozen=True):
    """Every checkpoint of an experiment that shall be deleted was dealt with."""

    experiment_id: int
    emptied: bool
    """False when files of some could not be deleted; `reason` says which."""
    reason: str
