"""The folded state of everything that lists and pages show."""

from services.catalogue.domain.fold import evolve
from services.catalogue.domain.small_records import DeletedExperiment, Switch, TaskOwner
from services.catalogue.domain.state import (
    Allocation,
    Checkpoint,
    Experiment,
    Live,
    Model,
    ModelVersion,
    OwnTask,
    State,
    Submission,
    Trial,
    Validation,
    Worker,
)

__all__ = [
    "Allocation",
    "Checkpoint",
    "DeletedExperiment",
    "Experiment",
    "Live",
    "Model",
    "ModelVersion",
    "OwnTask",
    "State",
    "Submission",
    "Switch",
    "TaskOwner",
    "Trial",
    "Validation",
    "Worker",
    "evolve",
]
