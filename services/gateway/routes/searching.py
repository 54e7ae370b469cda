"""Experiments by filter, their labels, and the columns there are (REST spec, section 3)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from services.gateway import paging, places, search
from services.gateway.present.experiment import experiment
from services.gateway.routes.trials import show
from services.gateway.web.visit import Asked, UserVisit

router = APIRouter()
COLUMNS = {
    "id": "NUMBER", "name": "TEXT", "description": "TEXT", "tags": "TEXT", "forkedFrom": "NUMBER",
    "startTime": "DATE", "duration": "NUMBER", "numTrials": "NUMBER", "state": "TEXT", "searcherType": "TEXT",
    "resourcePool": "TEXT", "progress": "NUMBER", "checkpointSize": "NUMBER", "checkpointCount": "NUMBER",
    "user": "TEXT", "searcherMetric": "TEXT", "searcherMetricsVal": "NUMBER",
}  # fmt: skip


@router.get("/experiments-search")
async def find(visit: Asked) -> Response:
    """A page of experiments that fit a filter, each with its best trial."""
    params, state = visit.params, visit.catalogue.state
    fits, project = search.check_of(params.text("filter")), params.integer("project_id")
    if project:
        places.project(state, project)
    chosen = [one for one in state.experiments.values() if project in (0, one.project_id)]
    shown = [experiment(one, state) for one in chosen]
    ordered = search.sorted_by([one for one in shown if fits(one)], params.text("sort"))
    part = paging.experiments_span(params.window(), len(ordered))
    page = ordered[part.start : part.end]
    best = await _best_trials(visit, page)
    rows = [{"experiment": one, "bestTrial": best.get(one["bestTrialId"])} for one in page]
    return visit.answer({"experiments": rows, "pagination": part.pagination})


async def _best_trials(visit: UserVisit, page: list[dict[str, Any]]) -> dict[int, Any]:
    ids = [one["bestTrialId"] for one in page if one["bestTrialId"] is not None]
    known = visit.catalogue.state.trials
    return {one["id"]: one for one in await show(visit, [known[id] for id in ids if id in known])}


@router.get("/experiment/labels")
async def labels(visit: Asked) -> Response:
    """All labels of experiments, the most used first."""
    state, project = visit.catalogue.state, visit.params.integer("project_id")
    used = Counter(
        label for one in state.experiments.values() if project in (0, one.project_id) for label in one.labels
    )
    return visit.answer({"labels": sorted(used, key=lambda label: (-used[label], label))})


@router.get("/projects/{id}/columns")
async def columns(visit: Asked, id: int) -> Response:
    """What experiments of a project can be filtered and sorted by."""
    state = visit.catalogue.state
    places.project(state, id)
    found = [_column(name, kind, "EXPERIMENT") for name, kind in COLUMNS.items()]
    known = (one for one in state.experiments.values() if one.project_id == id)
    names = {name for one in known for name in state.submissions[one.id].config.get("hyperparameters") or {}}
    found += [_column(f"hp.{name}", "UNSPECIFIED", "HYPERPARAMETERS") for name in sorted(names)]
    return visit.answer({"columns": found})


def _column(name: str, kind: str, location: str) -> dict[str, str]:
    return {
        "column": name,
        "location": f"LOCATION_TYPE_{location}",
        "type": f"COLUMN_TYPE_{kind}",
        "displayName": name.removeprefix("hp."),
    }
