"""Which run stored a checkpoint: what its script has said of that, as far as it can be true."""

from __future__ import annotations

from det_contracts import ids
from services.catalogue.domain import Checkpoint, State


def run_of(state: State, checkpoint: Checkpoint) -> int:
    """The run of its trial that stored a checkpoint.

    A script states its own allocation, and may state any text. Which trial it speaks for, the broker has
    checked; that trial has run so many times.
    """
    trial = state.trials[checkpoint.trial_id]
    task, _, number = checkpoint.allocation_id.rpartition(".")
    run = ids.parse_number(number) if task == trial.task_id else None
    return run if run is not None and 1 <= run <= trial.run else max(trial.run, 1)


def allocation_of(state: State, checkpoint: Checkpoint) -> str:
    """The id of the allocation that stored a checkpoint."""
    return ids.allocation_id(state.trials[checkpoint.trial_id].task_id, run_of(state, checkpoint))
