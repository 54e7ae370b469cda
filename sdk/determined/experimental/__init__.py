"""Python client: the functions of `client`, or a `Determined` object (client spec, section 2)."""

from determined.common.api import Session
from determined.experimental import client
from determined.experimental._checkpoint import Checkpoint
from determined.experimental._determined import Determined
from determined.experimental._enums import ModelOrderBy, ModelSortBy, TrialOrderBy, TrialSortBy
from determined.experimental._experiment import ExperimentReference
from determined.experimental._local import test_one_batch
from determined.experimental._model import Model
from determined.experimental._model_version import ModelVersion
from determined.experimental._trial import TrialReference

Experiment = ExperimentReference
Trial = TrialReference

__all__ = [
    "Checkpoint",
    "Determined",
    "Experiment",
    "ExperimentReference",
    "Model",
    "ModelOrderBy",
    "ModelSortBy",
    "ModelVersion",
    "Session",
    "Trial",
    "TrialOrderBy",
    "TrialReference",
    "TrialSortBy",
    "client",
    "test_one_batch",
]
