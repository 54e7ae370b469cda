"""How many batches open trials have trained, for the progress of those whose scripts report none.

The searcher alone knows what a search still needs, and scripts' own reports of progress. What it never hears
of are the steps of validations and checkpoints, which are known here.
"""

from __future__ import annotations

from collections.abc import Iterable

from services.catalogue.domain import State


def trained_batches(state: State, experiment_ids: Iterable[int]) -> dict[int, int]:
    """Batches by open trial, where the configured length is in batches; at most that length."""
    return {
        trial_id: min(state.trials[trial_id].steps, length)
        for id in experiment_ids
        if state.open_trials.first(id) is not None and (length := _length_in_batches(state, id))
        for trial_id in state.open_trials.ids(id)
        if state.trials[trial_id].steps
    }


def _length_in_batches(state: State, experiment_id: int) -> int:
    """0 if there is none, or if it is in another unit."""
    submission = state.submissions.get(experiment_id)
    length = submission.config.get("searcher", {}).get("max_length") if submission else None
    if isinstance(length, dict):
        length = length.get("batches")
    return length if isinstance(length, int) else 0
