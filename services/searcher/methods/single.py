"""A single trial: the smallest case of random sampling (searchers spec, section 3)."""

from __future__ import annotations

from services.searcher.methods.protocol import Declaration, SearchSettings
from services.searcher.methods.random import RandomSearch


def _create(settings: SearchSettings) -> RandomSearch:
    return RandomSearch(settings.space, settings.max_length, 1, 1, replaces_invalid=False)


METHOD = Declaration(RandomSearch, _create)
