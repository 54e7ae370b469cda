"""Queries to checkpoints: the registry, retention and the storage in use."""

from __future__ import annotations

import msgspec


class StorageUsed(msgspec.Struct, frozen=True, tag="storage_used"):
    """To checkpoints: by quota holder, the current usage in bytes of checkpoints."""


class StorageRefusal(msgspec.Struct, frozen=True, tag="storage_refusal"):
    """To checkpoints: `{reason: why the trial may not store a checkpoint of this size now, or ""}`."""

    trial_id: int
    size_bytes: int


class PreviewRetention(msgspec.Struct, frozen=True, kw_only=True, tag="preview_retention"):
    """To checkpoints: uuids that would be deleted if an experiment kept this many and ended now."""

    experiment_id: int
    experiment_best: int
    trial_best: int
    trial_latest: int


class Checkpoints(msgspec.Struct, frozen=True, kw_only=True, tag="checkpoints"):
    """To checkpoints: rows of the registry, newest last.

    `{uuid, trial_id, experiment_id, task_id, allocation_id, at, state, resources, metadata, steps_completed,
    metric, size_bytes, reason}`. Given filters are combined.
    """

    experiment_id: int | None = None
    trial_id: int | None = None
    uuids: list[str] = []
