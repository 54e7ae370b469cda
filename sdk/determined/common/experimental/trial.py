"""Trials of the client, by the name that older scripts import."""

from determined.experimental._metrics import StepsBackwardCompat
from determined.experimental.client import (
    CheckpointOrderBy,
    CheckpointSortBy,
    LogLevel,
    TrainingMetrics,
    TrialOrderBy,
    TrialReference,
    TrialSortBy,
    ValidationMetrics,
)

__all__ = [
    "CheckpointOrderBy",
    "CheckpointSortBy",
    "LogLevel",
    "StepsBackwardCompat",
    "TrainingMetrics",
    "TrialOrderBy",
    "TrialReference",
    "TrialSortBy",
    "ValidationMetrics",
]
