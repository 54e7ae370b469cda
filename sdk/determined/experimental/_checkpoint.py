"""A checkpoint in the client (client spec, section 2)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from determined import _arguments, errors
from determined.experimental import _download
from determined.experimental._enums import CheckpointState, DownloadMode
from determined.transport.identity import in_path
from determined.transport.rest import AnySession, Session, speaking

_READABLE = (CheckpointState.COMPLETED, CheckpointState.PARTIALLY_DELETED)


@dataclass
class CheckpointTrainingMetadata:
    """The trial that stored a checkpoint.

    Attributes:
        experiment_config: The experiment configuration with defaults filled in.
        experiment_id: Id of the experiment.
        trial_id: Id of the trial.
        hparams: Hyperparameters of the trial, by name.
        validation_metrics: Validation metrics at the checkpoint's steps, as `{"avgMetrics": {...},
            "batchMetrics": ...}`; empty if there was no validation.

    Example:
        ```python
        checkpoint = client.get_experiment(7).top_checkpoint()
        if checkpoint.training is not None:
            print(checkpoint.training.hparams, checkpoint.training.validation_metrics["avgMetrics"])
        ```
    """

    experiment_config: dict[str, Any]
    experiment_id: int
    trial_id: int
    hparams: dict[str, Any]
    validation_metrics: dict[str, Any]
    """`{"avgMetrics": {...}, "batchMetrics": ...}`"""


class Checkpoint:
    """A snapshot of a checkpoint's record. `client.get_checkpoint()` returns it.

    Attributes:
        uuid: Id of the checkpoint.
        state: A `CheckpointState` that says whether its files exist.
        resources: Size of each file in bytes, by its path in the checkpoint.
        metadata: Metadata stored by the script, such as `steps_completed`.
        report_time: When the checkpoint was reported, as an RFC 3339 string.
        training: The trial that stored it, as a `CheckpointTrainingMetadata`, or None if no trial did.
        task_id: Id of the task that stored it.
        allocation_id: Id of the run of that task.

    Example:
        ```python
        checkpoint = client.get_experiment(7).top_checkpoint()
        print(checkpoint.uuid, checkpoint.metadata["steps_completed"])
        print(sum(checkpoint.resources.values()), "bytes")
        path = checkpoint.download()
        ```
    """

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
        trial = "" if self.training is None else f", trial_id={self.training.trial_id}"
        return f"Checkpoint(uuid={self.uuid}, task_id={self.task_id}{trial})"

    def download(
        self, path: str | os.PathLike[str] | None = None, mode: DownloadMode = DownloadMode.AUTO
    ) -> str:
        """Download the files, unless the directory already holds the complete checkpoint.

        Args:
            path: Target directory. Default: `checkpoints/<uuid>`.
            mode: `DIRECT` reads the storage with your own credentials, `MASTER` downloads through the master,
                and `AUTO` tries both in this order.

        Returns:
            The path of the directory.

        Raises:
            CheckpointStateException: If the files are deleted or not stored yet.
            FileNotFoundError: If the storage is a shared file system that is not mounted here.
            NoDirectStorageAccess: With `DIRECT`, if the checkpoint does not name its storage.
            ProxiedDownloadFailed: With `MASTER`, if the download failed.
            MultipleDownloadsFailed: With `AUTO`, if both ways failed.

        Example:
            ```python
            folder = client.get_checkpoint(uuid).download("model", mode=client.DownloadMode.MASTER)
            ```
        """
        target = Path("checkpoints", self.uuid) if path is None else Path(path)
        mode = _arguments.member("mode", mode, DownloadMode)
        if self.state not in _READABLE:
            raise errors.CheckpointStateException(
                f"checkpoint {self.uuid} is {self.state.name} and has no files to download"
            )
        if not (target / _download.METADATA).exists():
            self._fetch(target, mode)
            if not (target / _download.METADATA).exists():
                # Checkpoints of other programs may have no such file. It marks the download as complete.
                self.write_metadata_file(target / _download.METADATA)
        return str(target)

    def write_metadata_file(self, path: str | os.PathLike[str]) -> None:
        """Write the metadata as JSON.

        Args:
            path: The file to write. Missing directories are created.

        Example:
            ```python
            client.get_checkpoint(uuid).write_metadata_file("out/metadata.json")
            ```
        """
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(json.dumps(self.metadata, indent=2), encoding="utf-8")

    def add_metadata(self, metadata: dict[str, Any]) -> None:
        """Set keys of the metadata. The stored files do not change.

        Args:
            metadata: Values by key. Other keys keep their values.

        Example:
            ```python
            client.get_experiment(7).top_checkpoint().add_metadata({"reviewed": True})
            ```
        """
        self._register({**self.metadata, **metadata})

    def remove_metadata(self, keys: Iterable[str]) -> None:
        """Remove keys from the metadata. The stored files do not change.

        Args:
            keys: The keys to remove. Unknown keys are ignored.

        Example:
            ```python
            client.get_checkpoint(uuid).remove_metadata(["note"])
            ```
        """
        removed = set(keys)
        self._register({key: value for key, value in self.metadata.items() if key not in removed})

    def delete(self) -> None:
        """Delete the checkpoint's files. Returns before they are deleted.

        Example:
            ```python
            client.get_checkpoint(uuid).delete()
            ```
        """
        self._session.delete("/api/v1/checkpoints", {"checkpointUuids": [self.uuid]})

    def remove_files(self, globs: list[str]) -> None:
        """Delete some of the checkpoint's files.

        Args:
            globs: Patterns of paths in the checkpoint, such as `["**/*.log"]`. An empty list deletes
                nothing but refreshes the recorded file sizes.

        Raises:
            TypeError: `globs` is a text instead of a list.

        Example:
            ```python
            client.get_trial(12).select_checkpoint(best=True).remove_files(["**/optimizer.*"])
            ```
        """
        # A string is iterable, too: each of its letters would be taken for a pattern, and `*` matches all.
        if isinstance(globs, str):
            raise TypeError(f"globs must be a list such as ['**/*.log'], not the string {globs!r}")
        body = {"checkpointUuids": [self.uuid], "checkpointGlobs": list(globs)}
        self._session.post("/api/v1/checkpoints/rm", body)

    def _fetch(self, target: Path, mode: DownloadMode) -> None:
        # Without a trial there is no configuration that says where the files are; the master knows.
        if mode is DownloadMode.MASTER or (self.training is None and mode is DownloadMode.AUTO):
            return _download.through_master(self._session, self.uuid, self.resources, target)
        if self.training is None:
            raise errors.NoDirectStorageAccess(f"checkpoint {self.uuid} does not say in which storage it is")
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
    return from_wire(session, session.get(f"/api/v1/checkpoints/{in_path(uuid)}")["checkpoint"])


def from_wire(session: Session, answer: dict[str, Any]) -> Checkpoint:
    """Create a checkpoint from its REST representation."""
    return Checkpoint(
        session,
        answer.get("taskId"),
        answer.get("allocationId"),
        answer["uuid"],
        answer.get("reportTime"),
        {name: int(size) for name, size in (answer.get("resources") or {}).items()},
        answer.get("metadata") or {},
        CheckpointState(answer["state"]),
        _training(answer.get("training") or {}),
    )


def _training(answer: dict[str, Any]) -> CheckpointTrainingMetadata | None:
    if not answer.get("trialId"):
        return None
    return CheckpointTrainingMetadata(
        answer.get("experimentConfig") or {},
        int(answer["experimentId"]),
        int(answer["trialId"]),
        answer.get("hparams") or {},
        answer.get("validationMetrics") or {},
    )
