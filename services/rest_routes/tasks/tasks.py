"""Tasks and allocations (REST spec, sections 6 and 8)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from det_contracts.problems import not_found
from services.catalogue.domain import Allocation
from services.rest_requests.visit import Authenticated, UserVisit
from services.rest_routes.present import task
from services.rest_routes.present.own_task import NOUNS

router = APIRouter()
root = APIRouter()


@router.get("/tasks")
async def list_tasks(visit: Authenticated) -> Response:
    """Waiting and running allocations."""
    ranks = await visit.peers.queue_order()
    return visit.answer({"allocationIdToSummary": _seen(visit, task.summaries(visit.catalogue.state, ranks))})


def _seen(visit: UserVisit, found: dict[str, Any]) -> dict[str, Any]:
    visibility = visit.visibility
    return {id: found[id] for id in visibility.filter_visible(visibility.includes_run, found)}


@root.get("/tasks")
async def list_raw(visit: Authenticated) -> Response:
    """Waiting and running allocations in the older form: a map, in snake_case."""
    ranks = await visit.peers.queue_order()
    return visit.answer(_seen(visit, task.raw_summaries(visit.catalogue.state, ranks)))


@router.get("/tasks/count")
async def count(visit: Authenticated) -> Response:
    """The number of waiting and running tasks, by kind."""
    state, visibility = visit.catalogue.state, visit.visibility
    live = Counter(
        state.allocations[id].kind for id in visibility.filter_visible(visibility.includes_run, state.live)
    )
    return visit.answer({f"{noun}s": live[kind] for kind, noun in NOUNS.items()})


@router.get("/tasks/{task_id}")
async def get(visit: Authenticated, task_id: str) -> Response:
    """One task with its runs."""
    runs = runs_of(visit, task_id)
    return visit.answer({"task": task.task(task_id, runs, visit.catalogue.state)})


def runs_of(visit: UserVisit, task_id: str) -> list[Allocation]:
    """The runs of a task in order, at least one. Raises `Refused` (not found)."""
    found: list[Allocation] = []
    allocations = visit.catalogue.state.allocations
    while (one := allocations.get(f"{task_id}.{len(found) + 1}")) is not None:
        found.append(one)
    if not found:
        raise not_found("task", task_id)
    return found
