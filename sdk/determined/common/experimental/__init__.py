"""The client's classes under the names that older scripts import."""

from determined.common.api import Session
from determined.experimental import (
    Checkpoint,
    Determined,
    ExperimentReference,
    Model,
    ModelOrderBy,
    ModelSortBy,
    ModelVersion,
    TrialOrderBy,
    TrialReference,
    TrialSortBy,
)

__all__ = [
    "Checkpoint",
    "Determined",
    "ExperimentReference",
    "Model",
    "ModelOrderBy",
    "ModelSortBy",
    "ModelVersion",
    "Session",
    "TrialOrderBy",
    "TrialReference",
    "TrialSortBy",
]
