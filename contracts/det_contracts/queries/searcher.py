"""Queries to the searcher: what searches do and did."""

from __future__ import annotations

from typing import Any

import msgspec


class SearchProgress(msgspec.Struct, frozen=True, tag="search_progress"):
    """To the searcher: `{experiment id as text: 0..1}` for those of the given experiments that exist.

    `batches` says how many batches open trials have trained, by trial id, where lengths are in batches. It
    counts for trials whose scripts report no progress themselves.
    """

    experiment_ids: list[int]
    batches: dict[int, int] = {}


class SearchState(msgspec.Struct, frozen=True, tag="search_state"):
    """To the searcher: the complete folded state of one experiment and its trials, as JSON."""

    experiment_id: int


class PreviewSearch(msgspec.Struct, frozen=True, tag="preview_search"):
    """To the searcher: what a search would do, simulated without training.

    `config` is completed. Rows `{lengths: [training lengths requested of the trials, in order], trials:
    count}`.
    """

    config: dict[str, Any]


class SearchRungs(msgspec.Struct, frozen=True, tag="search_rungs"):
    """To the searcher: `{brackets: [[rung, ...], ...]}`, lowest rung first; no brackets for other searches.

    A rung is `{length, waiting, count, entries: [[trial id, metric or None, verdict], ...]}`: the number of
    trials on their way to it, the total number of entries, and the best entries, best first. Verdicts:
    promoted, stopped, waits, top, and left for a trial that gave up.
    """

    experiment_id: int


class SearcherEvents(msgspec.Struct, frozen=True, tag="searcher_events"):
    """To the searcher: `{state, events: [{id, event}]}` of an experiment whose searcher is `custom`."""

    experiment_id: int
