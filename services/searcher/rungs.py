"""A halving search in the form shown to users: which trial is on which rung, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from det_contracts.ids import trial_task_id
from det_contracts.problems import not_found
from det_contracts.queries import SearchRungs
from services.searcher.domain import State
from services.searcher.methods.adaptive_asha import Tournament
from services.searcher.methods.asha import AshaSearch
from services.searcher.methods.protocol import WORST_METRIC
from services.searcher.methods.ranking import Entry

MAX_ENTRIES = 2000
"""Maximum number of entries per rung, because an answer must fit into one message."""


def search_rungs(state: State, query: SearchRungs) -> dict[str, Any]:
    """The brackets of a search. Raises `Refused` if the experiment does not exist."""
    experiment = state.experiments.get(query.experiment_id)
    if experiment is None:
        raise not_found("experiment", query.experiment_id)
    if experiment.unmanaged:
        return {"brackets": []}
    method = state.searches[experiment.id].method
    brackets = method.brackets if isinstance(method, Tournament) else ()
    if isinstance(method, AshaSearch):
        brackets = (method,)

    def trial_id_of(request_id: str) -> int | None:
        named = state.tasks.get(trial_task_id(experiment.id, request_id))
        return named.id if named is not None else None

    return {"brackets": [_rungs(bracket, trial_id_of) for bracket in brackets]}


def _rungs(bracket: AshaSearch, trial_id_of: Callable[[str], int | None]) -> list[dict[str, Any]]:
    rows = []
    for index, rung in enumerate(bracket.rungs):
        is_top = index == len(bracket.rungs) - 1
        # Nobody climbs from the top, so results lie there as they came.
        entries = sorted(rung.entries, key=lambda entry: entry.metric) if is_top else rung.entries
        entries_with_ids = ((trial_id_of(entry.request_id), entry) for entry in entries)
        shown = islice(((id, entry) for id, entry in entries_with_ids if id is not None), MAX_ENTRIES)
        rows.append(
            {
                "length": rung.length,
                "waiting": rung.outstanding,
                "count": len(rung.entries),
                "entries": [
                    [id, _metric(bracket, entry), _verdict(bracket, entry, is_top=is_top)]
                    for id, entry in shown
                ],
            }
        )
    return rows


def _metric(bracket: AshaSearch, entry: Entry) -> float | None:
    """The metric as reported; None for a trial without one, which ranks as the worst."""
    if abs(entry.metric) == WORST_METRIC:
        return None
    return entry.metric if bracket.smaller_is_better else -entry.metric


def _verdict(bracket: AshaSearch, entry: Entry, *, is_top: bool) -> str:
    if entry.request_id in bracket.early:
        return "left"
    if is_top:
        return "top"
    if entry.promoted:
        return "promoted"
    return "stopped" if entry.request_id in bracket.closed else "waits"
