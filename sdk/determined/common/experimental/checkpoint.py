"""Checkpoints of the client, by the name that older scripts import."""

from determined.experimental.client import (
    Checkpoint,
    CheckpointState,
    CheckpointTrainingMetadata,
    DownloadMode,
)

__all__ = ["Checkpoint", "CheckpointState", "CheckpointTrainingMetadata", "DownloadMode"]
