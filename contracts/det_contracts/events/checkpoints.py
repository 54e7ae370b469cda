"""Decisions of the checkpoints service: checkpoint deletion and the model registry."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts.codec import event


@event("checkpoints.deletion.requested", key="task_id")
class DeletionRequested(msgspec.Struct, frozen=True, kw_only=True):
    """A zero-slot task should delete these checkpoints.

    The scheduler places it on a worker with storage access.
    """

    task_id: str
    experiment_id: int
    uuids: tuple[str, ...]
    reason: str
    pool: str = "default"
    """The experiment's pool, whose workers can access the storage."""
    globs: tuple[str, ...] | None = None
    """Files to delete, relative to the checkpoint; None means all. Empty: only list the existing files."""
    sweep: bool = False
    """Whether to also delete what else the experiment left in storage: the event files of its trials."""

    @property
    def losing(self) -> tuple[str, ...]:
        """The checkpoints that are to lose files: none if the task only lists them."""
        return () if self.globs == () else self.uuids


@event("checkpoints.deletion.finished", key="task_id")
class DeletionFinished(msgspec.Struct, frozen=True, kw_only=True):
    """The task has ended. If `deleted`, the files are gone; otherwise the checkpoints stay registered."""

    task_id: str
    experiment_id: int
    uuids: tuple[str, ...]
    deleted: bool
    reason: str
    globs: tuple[str, ...] | None = None
    """As in the request."""
    sweep: bool = False
    """As in the request."""

    @property
    def losing(self) -> tuple[str, ...]:
        """The checkpoints that were to lose files: none if the task only lists them."""
        return () if self.globs == () else self.uuids


@event("checkpoints.experiment.emptied", key="experiment_id")
class ExperimentEmptied(msgspec.Struct, frozen=True):
    """All checkpoints of an experiment that is being deleted have been processed."""

    experiment_id: int
    emptied: bool
    """False if some files could not be deleted; `reason` names them."""
    reason: str


@event("checkpoints.checkpoint.files_listed", key="uuid")
class FilesListed(msgspec.Struct, frozen=True):
    """A task listed the files of a checkpoint in storage, after deleting some of them."""

    uuid: str
    resources: dict[str, int]
    """Relative path -> size in bytes."""
    reason: str


@event("checkpoints.checkpoint.metadata_set", key="uuid")
class MetadataSet(msgspec.Struct, frozen=True):
    """A user changed a checkpoint's metadata. Its files are unchanged."""

    uuid: str
    metadata: dict[str, Any]
    reason: str


@event("checkpoints.model.set", key="model_id")
class ModelSet(msgspec.Struct, frozen=True, kw_only=True):
    """A model was created or changed."""

    model_id: int
    name: str
    user: str
    """Name of the user who created it."""
    description: str = ""
    metadata: dict[str, Any] = {}
    labels: tuple[str, ...] = ()
    notes: str = ""
    archived: bool = False
    workspace_id: int = 1
    reason: str


@event("checkpoints.model.removed", key="model_id")
class ModelRemoved(msgspec.Struct, frozen=True):
    """A model was removed with its versions. Their checkpoints are subject to retention again."""

    model_id: int
    reason: str


@event("checkpoints.model.version_set", key="model_id")
class VersionSet(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a model was created or changed. Its checkpoint cannot be deleted."""

    model_id: int
    version_id: int
    number: int
    """Counts from 1 in each model; no number is used twice."""
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
    """A checkpoint is no longer this version."""

    model_id: int
    version_id: int
    reason: str


@event("checkpoints.creation.kept", key="request_id")
class CreationKept(msgspec.Struct, frozen=True):
    """Something was created for a request with an `Idempotency-Key`. Repeated requests return it."""

    request_id: str
    """Derived from the user and the key."""
    key: str
    digest: str
    """Digest of the complete request. A different request with the same key is refused."""
    value: Any
    """The answer to the command: the id of the created object."""
    reason: str
