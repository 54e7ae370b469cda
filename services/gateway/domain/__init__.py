"""The gateway's catalogue: what the log says of everything that people look at."""

from services.gateway.domain.fold import evolve
from services.gateway.domain.state import (
    Allocation,
    Checkpoint,
    ClosedSession,
    Experiment,
    Live,
    Model,
    ModelVersion,
    OpenSession,
    OwnTask,
    State,
    Submission,
    Switch,
    Template,
    Trial,
    User,
    Validation,
    Worker,
)

__all__ = [
    "Allocation",
    "Checkpoint",
    "ClosedSession",
    "Experiment",
    "Live",
    "Model",
    "ModelVersion",
    "OpenSession",
    "OwnTask",
    "State",
    "Submission",
    "Switch",
    "Template",
    "Trial",
    "User",
    "Validation",
    "Worker",
    "evolve",
]
