"""The checkpoints service's state, and how each event changes it."""

from services.checkpoints.domain.fold import evolve
from services.checkpoints.domain.state import (
    TRIES,
    Checkpoint,
    Deletion,
    Experiment,
    Key,
    Model,
    State,
    Trial,
    Validation,
)

__all__ = [
    "TRIES",
    "Checkpoint",
    "Deletion",
    "Experiment",
    "Key",
    "Model",
    "State",
    "Trial",
    "Validation",
    "evolve",
]
