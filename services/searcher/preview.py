"""Previews a search in a process of its own, because thousands of trials take seconds."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts.problems import invalid
from det_contracts.queries import PreviewSearch
from services.kit.job import Job
from services.searcher.methods import MethodError, breakdown, simulate

MAX_TRIALS = 5000
# Below the ten seconds for which a caller waits (`bus.PATIENCE_S`).
PREVIEW = Job("services.searcher.preview:play", seconds=8)


def play(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Answer a query as it was received."""
    return preview_search(msgspec.convert(request, PreviewSearch))


def preview_search(query: PreviewSearch) -> list[dict[str, Any]]:
    """Simulate a search with meaningless metrics. Raises `Refused` for one that cannot be simulated."""
    config = query.config
    if config["searcher"]["name"] == "custom":
        raise invalid(
            "<config>.searcher: a custom search is decided by your own code; nothing can be previewed"
        )
    seed = config["reproducibility"]["experiment_seed"]
    try:
        simulation = simulate(config["searcher"], config["hyperparameters"], seed, max_trials=MAX_TRIALS)
    except MethodError as error:
        raise invalid(f"<config>.searcher: {error}") from None
    return [{"lengths": lengths, "trials": count} for lengths, count in breakdown(simulation).items()]
