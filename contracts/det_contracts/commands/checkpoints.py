"""To the checkpoints service: the model registry, and checkpoints."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts.creation import Creation


class SetModel(Creation, frozen=True, kw_only=True, tag="set_model"):
    """To checkpoints: make a model, without an id, or change what is given of one. `value`: its id."""

    model_id: int | None = None
    name: str | msgspec.UnsetType = msgspec.UNSET
    description: str | msgspec.UnsetType = msgspec.UNSET
    metadata: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    labels: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    notes: str | msgspec.UnsetType = msgspec.UNSET
    archived: bool | msgspec.UnsetType = msgspec.UNSET
    workspace_id: int | msgspec.UnsetType = msgspec.UNSET
    user: str


class RemoveModel(msgspec.Struct, frozen=True, kw_only=True, tag="remove_model"):
    """To checkpoints: forget a model and its versions."""

    model_id: int
    user: str


class SetVersion(Creation, frozen=True, kw_only=True, tag="set_version"):
    """To checkpoints: register a checkpoint as a version, or change what is given of one.

    `value` of the answer: the version's id.
    """

    model_id: int
    number: int | None = None
    """None: a new one, of `checkpoint`."""
    checkpoint: str = ""
    name: str | msgspec.UnsetType = msgspec.UNSET
    comment: str | msgspec.UnsetType = msgspec.UNSET
    notes: str | msgspec.UnsetType = msgspec.UNSET
    metadata: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    labels: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    user: str


class RemoveVersion(msgspec.Struct, frozen=True, kw_only=True, tag="remove_version"):
    """To checkpoints: forget a version; its checkpoint stays."""

    model_id: int
    number: int
    user: str


class DeleteCheckpoints(msgspec.Struct, frozen=True, kw_only=True, tag="delete_checkpoints"):
    """To checkpoints: have tasks delete checkpoints, or those files of them that globs name."""

    uuids: tuple[str, ...]
    globs: tuple[str, ...] | None = None
    """None: all of each. Empty: only list what is there."""
    user: str


class ListFiles(msgspec.Struct, frozen=True, kw_only=True, tag="list_files"):
    """To checkpoints, from a deletion task: what lies in the storage of a checkpoint now."""

    uuid: str
    resources: dict[str, int]
    task_id: str


class SetMetadata(msgspec.Struct, frozen=True, kw_only=True, tag="set_metadata"):
    """To checkpoints: describe a checkpoint otherwise."""

    uuid: str
    metadata: dict[str, Any]
    user: str
