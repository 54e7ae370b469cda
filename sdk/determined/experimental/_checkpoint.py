"""A checkpoint as the client sees it (client spec, section 2)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from determined import errors
from determined.experimental import _download
from determined.experimental._enums import CheckpointState, DownloadMode
from determined.transport.rest import AnySession, Session, speaking

_READABLE = (CheckpointState.COMPLETED, CheckpointState.PARTIALLY_DELETED)


@dataclass
class CheckpointTrainingMetadata:
    """The trial that a checkpoint is of."""

    experiment_config: dict[str, Any]
    experiment_id: int
    trial_id: int
    hparams: dict[str, Any]
    validation_metrics: dict[str, Any]
    """`{"avgMetrics": {...}, "batchMetrics": ...}`"""


class Checkpoint:
    """A checkpoint that was reported to the master; its attributes are those of when it was asked for."""

    def __init__(
        self,
        session: AnySession,
        task_id: str | None,
        allocation_id: str | None,
        uuid: str,
        report_time: str | None,
        resources: dict[str, int],
        metadata: dict[str, Any],
        state: CheckpointState,
        training: CheckpointTrainingMetadata | None = None,
    ) -> None:
        self._session = speaking(session)
        self.task_id, self.allocation_id, self.uuid = task_id, allocation_id, uuid
        self.report_time, self.resources, self.metadata = report_time, resources, metadata
        self.state, self.training = state, training

    def __repr__(self) -> str:
        if self.training is None:
            return f"Checkpoint(uuid={self.uuid}, task_id={self.task_id})"
        return f"Checkpoint(uuid={self.uuid}, trial_id={self.training.trial_id})"

    def download(
        self, path: str | os.PathLike[str] | None = None, mode: DownloadMode = DownloadMode.AUTO
    ) -> str:
        """Bring the files to a directory, by default `checkpoints/<uuid>`, and return its path.

        Nothing is fetched if it holds `metadata.json` already. Raises `CheckpointStateException` if the files
        are gone or not there yet, FileNotFoundError if a shared file system is not mounted here,
        `ProxiedDownloadFailed` (through the master) and `MultipleDownloadsFailed` (both ways).
        """
        target = Path("checkpoints", self.uuid) if path is None else Path(path)
        mode = DownloadMode(mode)
        if self.state not in _READABLE:
            raise errors.CheckpointStateException(
                f"checkpoint {self.uuid} is {self.state.name} and has no files to download"
            )
        if not (target / _download.METADATA).exists():
            self._fetch(target, mode)
            if not (target / _download.METADATA).exists():
                self.write_metadata_file(target / _download.METADATA)
        return str(target)

    def write_metadata_file(self, path: str | os.PathLike[str]) -> None:
        """Write the metadata as JSON."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(json.dumps(self.metadata, indent=2), encoding="utf-8")

    def add_metadata(self, metadata: dict[str, Any]) -> None:
        """Set keys of the registered metadata; the stored files stay as they are."""
        self._register({**self.metadata, **metadata})

    def remove_metadata(self, keys: Iterable[str]) -> None:
        """Take keys from the registered metadata; those it lacks are ignored."""
        gone = set(keys)
        self._register({key: value for key, value in self.metadata.items() if key not in gone})

    def delete(self) -> None:
        """Have the files deleted; the work goes on after the call."""
        self._session.delete("/api/v1/checkpoints", {"checkpointUuids": [self.uuid]})

    def remove_files(self, globs: list[str]) -> None:
        """Have the files that globs name deleted; without any, only their sizes are looked up again."""
        if isinstance(globs, str):
            raise TypeError(f"globs is a list such as ['**/*.log'], not the text {globs!r}")
        body = {"checkpointUuids": [self.uuid], "checkpointGlobs": list(globs)}
        self._session.post("/api/v1/checkpoints/rm", body)

    def _fetch(self, target: Path, mode: DownloadMode) -> None:
        if mode is DownloadMode.MASTER or (self.training is None and mode is DownloadMode.AUTO):
            return _download.through_master(self._session, self.uuid, self.resources, target)
        if self.training is None:
            raise errors.NoDirectStorageAccess(f"checkpoint {self.uuid} does not tell in which storage it is")
        config = self.training.experiment_config["checkpoint_storage"]
        if mode is DownloadMode.DIRECT:
            return _download.direct(self.uuid, config, target)
        return _download.either(self._session, self.uuid, config, self.resources, target)

    def _register(self, metadata: dict[str, Any]) -> None:
        body = {"checkpoint": {"uuid": self.uuid, "resources": self.resources, "metadata": metadata}}
        self._session.post(f"/api/v1/checkpoints/{self.uuid}/metadata", body)
        self.metadata = metadata


def get(session: Session, uuid: str) -> Checkpoint:
    """The checkpoint of this id; raises `NotFoundException`."""
    return from_wire(session, session.get(f"/api/v1/checkpoints/{uuid}")["checkpoint"])


def from_wire(session: Session, told: dict[str, Any]) -> Checkpoint:
    """A checkpoint as the REST API writes it."""
    return Checkpoint(
        session,
        told.get("taskId"),
        told.get("allocationId"),
        told["uuid"],
        told.get("reportTime"),
        {name: int(size) for name, size in (told.get("resources") or {}).items()},
        told.get("metadata") or {},
        CheckpointState(told["state"]),
        _training(told.get("training") or {}),
    )


def _training(told: dict[str, Any]) -> CheckpointTrainingMetadata | None:
    if not told.get("trialId"):
        return None
    return CheckpointTrainingMetadata(
        told.get("experimentConfig") or {},
        int(told["experimentId"]),
        int(told["trialId"]),
        told.get("hparams") or {},
        told.get("validationMetrics") or {},
    )
