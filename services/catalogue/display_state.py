"""The state that people are shown: what is ACTIVE says how far it has come (scheduling spec, 8.1)."""

from __future__ import annotations

from typing import get_args

from det_contracts import states
from services.catalogue.domain import Experiment, Trial
from services.catalogue.domain.state import CheckpointState

DISPLAY_STATES = ("QUEUED", "PULLING", "STARTING", "RUNNING")
STATES = (*states.STATES, *DISPLAY_STATES)
"""What experiments and trials may be asked for by."""
CHECKPOINT_STATES = ("ACTIVE", *get_args(CheckpointState))


def experiment_state(experiment: Experiment) -> str:
    """RUNNING when anything of it runs, else QUEUED, for as long as it is ACTIVE.

    An unmanaged one waits for no slots: it is ACTIVE until a script of it runs.
    """
    if experiment.state != "ACTIVE" or (experiment.unmanaged and not experiment.running):
        return experiment.state
    return "RUNNING" if experiment.running else "QUEUED"


def trial_state(trial: Trial) -> str:
    """RUNNING or QUEUED; ACTIVE for a trial that waits for the search to go on."""
    return trial.phase or trial.state if trial.state == "ACTIVE" else trial.state
