"""What the searcher answers from its folded state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from det_contracts.problems import invalid, not_found
from det_contracts.queries import PreviewSearch, SearcherEvents, SearchProgress, SearchRungs, SearchState
from services.searcher import unmanaged
from services.searcher.custom import searcher_events
from services.searcher.domain import Experiment, State
from services.searcher.methods import MethodError, breakdown, progress, simulate
from services.searcher.rungs import search_rungs

MOST_PREVIEWED_TRIALS = 5000
"""The searcher answers nobody else while it plays."""


def search_progress(state: State, query: SearchProgress) -> dict[str, float]:
    """Progress, 0 to 1, of the experiments that exist; 1 once an experiment is complete."""
    known = [state.experiments[id] for id in query.experiment_ids if id in state.experiments]
    return {str(one.id): _progress(state, one) for one in known if one.state != "DELETED"}


def _progress(state: State, experiment: Experiment) -> float:
    if experiment.state == "COMPLETED":
        return 1.0
    if experiment.unmanaged:
        return unmanaged.progress(state, experiment)
    return progress(state.searches[experiment.id])


def search_state(state: State, query: SearchState) -> dict[str, Any]:
    """One experiment whole: its record, its search and its trials in order; unmanaged ones have no search."""
    experiment = state.experiments.get(query.experiment_id)
    if experiment is None or experiment.state == "DELETED":
        raise not_found("experiment", query.experiment_id)
    trials = [t for _, t in sorted(state.trials.items()) if t.experiment_id == experiment.id]
    plain: dict[str, Any] = msgspec.to_builtins(
        {"experiment": experiment, "search": state.searches.get(experiment.id), "trials": trials}
    )
    return plain


def preview_search(state: State, query: PreviewSearch) -> list[dict[str, Any]]:
    """Play a search whose metrics say nothing; raises `Refused` for one that cannot be played."""
    config = query.config
    if config["searcher"]["name"] == "custom":
        raise invalid(
            "<config>.searcher: a custom search is decided by your own code; nothing can be previewed"
        )
    seed = config["reproducibility"]["experiment_seed"]
    try:
        played = simulate(
            config["searcher"], config["hyperparameters"], seed, most_trials=MOST_PREVIEWED_TRIALS
        )
    except MethodError as error:
        raise invalid(f"<config>.searcher: {error}") from None
    return [{"lengths": lengths, "trials": count} for lengths, count in breakdown(played).items()]


ANSWERS: dict[Any, Callable[[State, Any], Any]] = {
    SearchProgress: search_progress,
    SearchState: search_state,
    PreviewSearch: preview_search,
    SearcherEvents: searcher_events,
    SearchRungs: search_rungs,
}
