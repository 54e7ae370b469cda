"""To the checkpoints service: the model registry, and checkpoints."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts.creation import Creation
from det_contracts.ownership import command


@command("checkpoints")
class SetModel(Creation, frozen=True, kw_only=True, tag="set_model"):
    """To checkpoints: create a model, if it has no id, or change the given fields. `value`: its id."""

    model_id: int | None = None
    name: str | msgspec.UnsetType = msgspec.UNSET
    description: str | msgspec.UnsetType = msgspec.UNSET
    metadata: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    labels: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    notes: str | msgspec.UnsetType = msgspec.UNSET
    archived: bool | msgspec.UnsetType = msgspec.UNSET
    workspace_id: int | msgspec.UnsetType = msgspec.UNSET
    user: str


@command("checkpoints")
class RemoveModel(msgspec.Struct, frozen=True, kw_only=True, tag="remove_model"):
    """To checkpoints: remove a model and its versions."""

    model_id: int
    user: str


@command("checkpoints")
class SetVersion(Creation, frozen=True, kw_only=True, tag="set_version"):
    """To checkpoints: register a checkpoint as a version, or change the given fields of one.

    `value` of the answer: the version's id.
    """

    model_id: int
    number: int | None = None
    """None: a new version, of `checkpoint`."""
    checkpoint: str = ""
    name: str | msgspec.UnsetType = msgspec.UNSET
    comment: str | msgspec.UnsetType = msgspec.UNSET
    notes: str | msgspec.UnsetType = msgspec.UNSET
    metadata: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    labels: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    user: str


@command("checkpoints")
class RemoveVersion(msgspec.Struct, frozen=True, kw_only=True, tag="remove_version"):
    """To checkpoints: remove a version; its checkpoint is kept."""

    model_id: int
    number: int
    user: str


@command("checkpoints")
class DeleteCheckpoints(msgspec.Struct, frozen=True, kw_only=True, tag="delete_checkpoints"):
    """To checkpoints: let tasks delete checkpoints, or the files in them that match globs."""

    uuids: tuple[str, ...]
    globs: tuple[str, ...] | None = None
    """None: all of each. Empty: only list the existing files."""
    user: str


@command("checkpoints")
class ListFiles(msgspec.Struct, frozen=True, kw_only=True, tag="list_files"):
    """To checkpoints, from a deletion task: the files that a checkpoint currently has in storage."""

    uuid: str
    resources: dict[str, int]
    task_id: str


@command("checkpoints")
class SetMetadata(msgspec.Struct, frozen=True, kw_only=True, tag="set_metadata"):
    """To checkpoints: replace a checkpoint's metadata."""

    uuid: str
    metadata: dict[str, Any]
    user: str
