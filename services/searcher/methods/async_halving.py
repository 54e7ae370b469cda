"""One bracket of asynchronous successive halving, as the user configures it (searchers spec, section 5)."""

from __future__ import annotations

from services.searcher.methods.asha import AshaSearch
from services.searcher.methods.protocol import Declaration, SearchSettings


def _create(settings: SearchSettings) -> AshaSearch:
    searcher = settings.searcher
    return AshaSearch.bracket(
        settings.space,
        num_rungs=searcher["num_rungs"],
        max_length=settings.max_length,
        max_trials=searcher["max_trials"],
        divisor=searcher["divisor"],
        max_concurrent=searcher["max_concurrent_trials"],
        stop_once=searcher["stop_once"],
        smaller_is_better=settings.smaller_is_better,
    )


METHOD = Declaration(AshaSearch, _create)
