"""Tasks and allocations (REST spec, sections 6 and 8)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from starlette.responses import Response

from det_contracts.problems import not_found
from services.catalogue.domain import Allocation
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_routes.present import task
from services.rest_routes.present.own_task import NOUNS
from services.web.routes import Routes

router = Routes()
root = Routes()


@router.get("/tasks", ("view", "listed"))
async def list_tasks(call: Authenticated) -> Response:
    """Waiting and running allocations."""
    ranks = await call.peers.queue_order()
    return call.answer(
        {"allocationIdToSummary": _visible_summaries(call, task.summaries(call.catalogue.state, ranks))}
    )


def _visible_summaries(call: UserCall, summaries: dict[str, Any]) -> dict[str, Any]:
    visibility = call.visibility
    return {id: summaries[id] for id in visibility.filter_visible(visibility.includes_run, summaries)}


@root.get("/tasks", ("view", "listed"))
async def list_raw(call: Authenticated) -> Response:
    """Waiting and running allocations in the older form: a map, in snake_case."""
    ranks = await call.peers.queue_order()
    return call.answer(_visible_summaries(call, task.raw_summaries(call.catalogue.state, ranks)))


@router.get("/tasks/count", ("view", "listed"))
async def count(call: Authenticated) -> Response:
    """The number of waiting and running tasks, by kind."""
    state, visibility = call.catalogue.state, call.visibility
    live = Counter(
        state.allocations[id].kind for id in visibility.filter_visible(visibility.includes_run, state.live)
    )
    return call.answer({f"{noun}s": live[kind] for kind, noun in NOUNS.items()})


@router.get("/tasks/{task_id}", ("view", "task"))
async def get(call: Authenticated, task_id: str) -> Response:
    """One task with its runs."""
    runs = runs_of(call, task_id)
    return call.answer({"task": task.task(task_id, runs, call.catalogue.state)})


def runs_of(call: UserCall, task_id: str) -> list[Allocation]:
    """The runs of a task in order, at least one. Raises `Refused` (not found)."""
    runs: list[Allocation] = []
    allocations = call.catalogue.state.allocations
    while (run := allocations.get(f"{task_id}.{len(runs) + 1}")) is not None and run.task_owner is None:
        runs.append(run)
    if not runs:
        raise not_found("task", task_id)
    return runs
