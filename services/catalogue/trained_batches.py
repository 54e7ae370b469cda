"""How many batches open trials have trained, for the progress of those whose scripts report none.

The searcher alone knows what a search still needs, and scripts' own reports of progress. What it never hears
of are the steps of validations and checkpoints, which are known here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from services.catalogue.domain import State

MOST_TRIALS = 5_000
"""Of a question to the searcher, which has to fit a message; a page of a list has far fewer open trials."""


def trained_batches(state: State, experiment_ids: Iterable[int]) -> dict[int, int]:
    """Batches by open trial, where the configured length is in batches; at most that length.

    Of more than `MOST_TRIALS` open trials, the rest is left out: as much progress is shown as is reported.
    """
    return dict(itertools.islice(_trained(state, experiment_ids), MOST_TRIALS))


def _trained(state: State, experiment_ids: Iterable[int]) -> Iterator[tuple[int, int]]:
    for id in experiment_ids:
        if state.open_trials.first(id) is None or not (length := _length_in_batches(state, id)):
            continue
        for trial_id in state.open_trials.ids(id):
            if steps := state.trials[trial_id].steps:
                yield trial_id, min(steps, length)


def _length_in_batches(state: State, experiment_id: int) -> int:
    """0 if there is none, or if it is in another unit."""
    submission = state.submissions.get(experiment_id)
    length = submission.config.get("searcher", {}).get("max_length") if submission else None
    if isinstance(length, dict):
        length = length.get("batches")
    return length if isinstance(length, int) else 0
