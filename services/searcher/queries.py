"""Queries that the searcher answers from its folded state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from det_contracts.problems import not_found
from det_contracts.queries import SearcherEvents, SearchProgress, SearchRungs, SearchState
from services.searcher import unmanaged
from services.searcher.custom import searcher_events
from services.searcher.domain import Experiment, State
from services.searcher.methods import progress
from services.searcher.rungs import search_rungs


def search_progress(state: State, query: SearchProgress) -> dict[str, float]:
    """Progress of the experiments that exist, 0 to 1. A completed experiment has 1."""
    experiments = [state.experiments[id] for id in query.experiment_ids if id in state.experiments]
    trained: dict[int, dict[str, int]] = {}
    for trial in (state.trials[id] for id in query.batches if id in state.trials):
        trained.setdefault(trial.experiment_id, {})[trial.request_id] = query.batches[trial.id]
    return {
        str(experiment.id): _progress(state, experiment, trained.get(experiment.id, {}))
        for experiment in experiments
    }


def _progress(state: State, experiment: Experiment, trained: Mapping[str, float]) -> float:
    # A search may end with less training than it was granted, such as one whose trials exited early.
    if experiment.state == "COMPLETED":
        return 1.0
    if experiment.unmanaged:
        return unmanaged.progress(state, experiment, trained)
    return progress(state.searches[experiment.id], trained)


def search_state(state: State, query: SearchState) -> dict[str, Any]:
    """One experiment with its search and its trials in order. Unmanaged experiments have no search."""
    experiment = state.experiments.get(query.experiment_id)
    if experiment is None:
        raise not_found("experiment", query.experiment_id)
    trials = sorted(state.trials_of(experiment.id), key=lambda trial: trial.id)
    plain: dict[str, Any] = msgspec.to_builtins(
        {"experiment": experiment, "search": state.searches.get(experiment.id), "trials": trials}
    )
    return plain


ANSWERS: dict[Any, Callable[[State, Any], Any]] = {
    SearchProgress: search_progress,
    SearchState: search_state,
    SearcherEvents: searcher_events,
    SearchRungs: search_rungs,
}
