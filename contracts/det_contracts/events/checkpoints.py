"""What the checkpoints service decides: which checkpoints go and why, and which are versions of models."""

from __future__ import annotations

from typing import Any

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
    globs: tuple[str, ...] | None = None
    """Files to delete, relative to the checkpoint; None: all of it. Empty: only list what is there."""
    sweep: bool = False
    """Also what else the experiment left in the storage: the event files of its trials."""


@event("checkpoints.deletion.finished", key="task_id")
class DeletionFinished(msgspec.Struct, frozen=True, kw_only=True):
    """The task is over; when `deleted` the files are gone, else the checkpoints stay registered."""

    task_id: str
    experiment_id: int
    uuids: tuple[str, ...]
    deleted: bool
    reason: str
    globs: tuple[str, ...] | None = None
    """As in the request."""
    sweep: bool = False
    """As in the request."""


@event("checkpoints.experiment.emptied", key="experiment_id")
class ExperimentEmptied(msgspec.Struct, frozen=True):
    """Every checkpoint of an experiment that shall be deleted was dealt with."""

    experiment_id: int
    emptied: bool
    """False when files of some could not be deleted; `reason` says which."""
    reason: str


@event("checkpoints.checkpoint.files_listed", key="uuid")
class FilesListed(msgspec.Struct, frozen=True):
    """A task looked at what lies in the storage of a checkpoint, after it had deleted some of it."""

    uuid: str
    resources: dict[str, int]
    """Relative path -> size in bytes."""
    reason: str


@event("checkpoints.checkpoint.metadata_set", key="uuid")
class MetadataSet(msgspec.Struct, frozen=True):
    """Somebody described a checkpoint otherwise; its files stay as they are."""

    uuid: str
    metadata: dict[str, Any]
    reason: str


@event("checkpoints.model.set", key="model_id")
class ModelSet(msgspec.Struct, frozen=True, kw_only=True):
    """A model is there, or is described so from now on."""

    model_id: int
    name: str
    user: str
    """Who made it."""
    description: str = ""
    metadata: dict[str, Any] = {}
    labels: tuple[str, ...] = ()
    notes: str = ""
    archived: bool = False
    workspace_id: int = 1
    reason: str


@event("checkpoints.model.removed", key="model_id")
class ModelRemoved(msgspec.Struct, frozen=True):
    """A model is gone with its versions; their checkpoints are subject to retention again."""

    model_id: int
    reason: str


@event("checkpoints.model.version_set", key="model_id")
class VersionSet(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint is a version of a model, or is described so from now on; it cannot be deleted."""

    model_id: int
    version_id: int
    number: int
    """Counts from 1 in each model; none is used twice."""
    checkpoint: str
    user: str
    name: str = ""
    comment: str = ""
    notes: str = ""
    metadata: dict[str, Any] = {}
    labels: tuple[str, ...] = ()
    reason: str


@event("checkpoints.model.version_removed", key="model_id")
class VersionRemoved(msgspec.Struct, frozen=True):
    """A checkpoint is this version no longer."""

    model_id: int
    version_id: int
    reason: str


@event("checkpoints.creation.kept", key="request_id")
class CreationKept(msgspec.Struct, frozen=True):
    """Something was made for a request with an `Idempotency-Key`; the same request again leads to it."""

    request_id: str
    """Made of who asked and of the key."""
    key: str
    digest: str
    """Of all that was asked for; another request with the same key is refused."""
    value: Any
    """What the command was answered: the id of what was made."""
    reason: str
