"""The displayed state, which refines ACTIVE into stages (scheduling spec, 8.1)."""

from __future__ import annotations

from typing import get_args

from det_contracts import states
from services.catalogue.domain import Experiment, Trial
from services.catalogue.domain.state import CheckpointState

DISPLAY_STATES = ("QUEUED", "PULLING", "STARTING", "RUNNING")
STATES = (*states.STATES, *DISPLAY_STATES)
"""The states by which experiments and trials can be filtered."""
CHECKPOINT_STATES = ("ACTIVE", *get_args(CheckpointState))


def experiment_state(experiment: Experiment) -> str:
    """While ACTIVE: RUNNING if any run is running, otherwise QUEUED.

    An unmanaged experiment does not wait for slots, so it is ACTIVE until one of its scripts runs.
    """
    if experiment.state != "ACTIVE" or (experiment.unmanaged and not experiment.running):
        return experiment.state
    return "RUNNING" if experiment.running else "QUEUED"


def trial_state(trial: Trial) -> str:
    """While ACTIVE: RUNNING or QUEUED, or ACTIVE if the trial waits for the search method."""
    return trial.phase or trial.state if trial.state == "ACTIVE" else trial.state
