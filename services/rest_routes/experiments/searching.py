"""Search of experiments, their labels, and the available columns (REST spec, section 3)."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from starlette.responses import Response

from det_contracts import queries
from det_contracts.problems import Refused
from services.catalogue import search
from services.catalogue.columns.column import Column
from services.catalogue.columns.experiments import COLUMNS
from services.catalogue.columns.values import (
    HPARAM,
    STATISTICS,
    representative_trial,
    resolve_column,
)
from services.catalogue.domain import Experiment
from services.catalogue.peers import Summary
from services.catalogue.search import Lookup
from services.people import workspace_records
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_routes.experiments.experiments import load_for_display, unable_to_start
from services.rest_routes.present.answers import ColumnsThere, FoundExperiments, response_schema
from services.rest_routes.present.experiment import experiment
from services.rest_routes.trials.trials import show
from services.web.query import NOTHING, Flag, FromQuery, Integer, Paged, QueryModel
from services.web.routes import Routes

router = Routes()
TRIALS_PER_QUERY = 20
"""Trials per query: each may have thousands of metrics, and the answer must fit into one message."""
MAX_EXPERIMENTS = 200
"""How many of a project's newest experiments contribute metric columns."""
MAX_METRICS = 1000
"""How many metrics have columns. Each has five, and scripts name as many as they like."""


class ProjectQuery(QueryModel):
    """Query parameter: the project, or 0 for all."""

    project_id: Integer = 0


class SearchQuery(Paged, ProjectQuery):
    """GET /experiments-search"""

    filter: str = ""
    sort: str = ""
    columns: list[str] = NOTHING
    lean: Flag = False


@router.get("/experiments-search", ("view", "listed"), **response_schema(FoundExperiments))
async def find(call: Authenticated, query: FromQuery[SearchQuery]) -> Response:
    """A page of experiments that match a filter, each with its best trial.

    Our additions: `lean` omits configurations and best trials, and `columns` adds the values of these columns
    to each row.
    """
    state, project = call.catalogue.state, query.project_id
    # First, so that a wrong filter costs nothing.
    search_request = search.parse(query.filter, query.sort)
    wanted = [resolve_column(name) for text in query.columns for name in text.split(",") if name]
    if project:
        workspace_records.project(state, project)
        call.check_view("project", project)
    lookup = await call.catalogue.columns.lookup(state, call.peers, {*search_request.names, *wanted})
    visibility = call.visibility
    ids = visibility.filter_visible(visibility.includes_experiment, call.catalogue.experiment_ids.all(state))
    if project:
        ids = [id for id in ids if state.experiments[id].project_id == project]
    # Runs in a thread: it takes 100 ms with 100,000 experiments, which would block the event loop.
    page_ids, part = await asyncio.to_thread(search_request.page, lookup, ids, query.window)

    async def show_rows(ids: Sequence[int]) -> list[dict[str, Any]]:
        # Some may have been deleted while the thread ran.
        page = [state.experiments[id] for id in ids if id in state.experiments]
        rows = await _rows(call, page, query.lean)
        if wanted:
            rows = [row | {"values": _values(lookup, wanted, row["experiment"]["id"])} for row in rows]
        return rows

    return await call.answer_list("experiments", page_ids, show_rows, pagination=part.pagination)


async def _rows(call: UserCall, page: list[Experiment], lean: bool) -> list[dict[str, Any]]:
    state = call.catalogue.state
    best = {} if lean else await _best_trials(call, page)
    progress = (
        await call.peers.progress([record.id for record in page if record.ended_at is None]) if lean else {}
    )
    unable = await unable_to_start(call, page)
    trials = await load_for_display(call, [record.id for record in page], lean)
    return [
        {
            "experiment": experiment(
                record,
                state,
                trials[record.id],
                progress=progress.get(record.id),
                can_start=record.id not in unable,
                lean=lean,
            ),
            "bestTrial": best.get(record.best_trial),
        }
        for record in page
        if record.id in state.experiments
    ]


async def _best_trials(call: UserCall, page: list[Experiment]) -> dict[int | None, Any]:
    chosen = await call.catalogue.evicted.fetch_trials(
        record.best_trial for record in page if record.best_trial
    )
    return {trial["id"]: trial for trial in await show(call, list(chosen.trials.values()), chosen)}


def _values(lookup: Lookup, wanted: list[str], id: int) -> dict[str, Any]:
    return {name: lookup[name].get(id) for name in wanted}


@router.get("/experiment/labels", ("view", "listed"))
async def labels(call: Authenticated, query: FromQuery[ProjectQuery]) -> Response:
    """All labels of experiments, most used first."""
    used = call.catalogue.labels.count(call.catalogue.state, _projects(call, query.project_id))
    return call.answer({"labels": sorted(used, key=lambda label: (-used[label], label))})


@router.get("/projects/{id}/columns", ("view", "project"), **response_schema(ColumnsThere))
async def columns(call: Authenticated, id: int) -> Response:
    """The columns by which a project's experiments can be filtered and sorted. Id 0 means all projects.

    At most 1,000 metrics have columns here, those that searches go by first; the others can be named all the
    same.
    """
    state = call.catalogue.state
    if id:
        workspace_records.project(state, id)
    shown_columns = [_fixed_column(column) for column in COLUMNS.values() if column.listed]
    hparams = call.catalogue.hyperparameters.count(state, _projects(call, id))
    shown_columns += [
        _column(f"{HPARAM}{name}", "UNSPECIFIED", "HYPERPARAMETERS", "text") for name in sorted(hparams)
    ]
    metrics = await _metrics(call, _newest_ids(call, id))
    return call.answer({"columns": [*shown_columns, *metrics]})


def _projects(call: UserCall, project_id: int) -> Callable[[int], bool]:
    """Whether a project is visible and the given one. Project 0 means all projects."""
    visibility = call.visibility
    return lambda id: project_id in (0, id) and visibility.includes_project(id)


def _newest_ids(call: UserCall, project_id: int) -> list[int]:
    """Ids of a project's newest visible experiments. Project 0 means all projects."""
    state, is_wanted = call.catalogue.state, _projects(call, project_id)
    newest_first = reversed(call.catalogue.experiment_ids.all(state))
    ids = (id for id in newest_first if is_wanted(state.experiments[id].project_id))
    return list(islice(ids, MAX_EXPERIMENTS))


@router.get("/projects/{id}/experiments/metric-ranges", ("view", "project"))
async def metric_ranges(call: Authenticated, id: int) -> Response:
    """The range of each metric column in the newest experiments of a project."""
    state = call.catalogue.state
    if id:
        workspace_records.project(state, id)
    trials = [
        representative_trial(state.experiments[experiment_id]) for experiment_id in _newest_ids(call, id)
    ]
    trial_ids = [trial for trial in trials if trial is not None]
    column_values: dict[str, list[float]] = {}
    for start in range(0, len(trial_ids), TRIALS_PER_QUERY):
        for summary in (await call.peers.summaries(trial_ids[start : start + TRIALS_PER_QUERY])).values():
            for name, value in _statistics(summary):
                column_values.setdefault(name, []).append(value)
    ranges = [
        {"metricsName": name, "min": min(all), "max": max(all)} for name, all in sorted(column_values.items())
    ]
    return call.answer({"ranges": ranges})


def _statistics(summary: Summary) -> Iterator[tuple[str, float]]:
    """Each number in a trial's summary, with the name of its column."""
    for group, metrics in summary.summary.items():
        for name, values in metrics.items():
            for statistic in STATISTICS:
                value = values.get(statistic)
                if isinstance(value, bool) or not isinstance(value, int | float):
                    continue
                # An integer may be too large for `math.isfinite`.
                if abs(value) <= sys.float_info.max:
                    yield f"{group}.{name}.{statistic}", value


async def _metrics(call: UserCall, ids: list[int]) -> list[dict[str, str]]:
    """Metric columns of the newest experiments; empty while the metrics service is unavailable."""
    metric_names: dict[str, list[str]] = {}
    with contextlib.suppress(Refused):
        metric_names = await call.peers.query(queries.MetricNames(ids)) if ids else {}
    every = [(group, name) for group, names in metric_names.items() for name in names]
    if len(every) > MAX_METRICS:
        submissions = call.catalogue.state.submissions
        searched = {submissions[id].config["searcher"]["metric"] for id in ids if id in submissions}
        every.sort(key=lambda metric: (metric[1] not in searched, metric[0] not in _LOCATIONS))
    return [
        _column(f"{group}.{name}.{statistic}", "NUMBER", _LOCATIONS.get(group, "CUSTOM_METRIC"))
        for group, name in every[:MAX_METRICS]
        for statistic in STATISTICS
    ]


_LOCATIONS = {"validation": "VALIDATIONS", "training": "TRAINING"}


def _fixed_column(column: Column[Experiment]) -> dict[str, str]:
    shown = _column(column.name, column.type.api_type, "EXPERIMENT", column.type.display)
    return shown | {"displayName": column.title, "field": column.key or ""}


def _column(name: str, kind: str, location: str, look: str = "number") -> dict[str, str]:
    """Describe a column.

    Our additions: `look` tells pages how to show it, and `field` names the field of a row that holds its
    value, if any.
    """
    return {
        "column": name,
        "location": f"LOCATION_TYPE_{location}",
        "type": f"COLUMN_TYPE_{kind}",
        "displayName": name.removeprefix(HPARAM),
        "look": look,
        "field": "",
    }
