"""Agents, slots, the resource pool and the job queue (REST spec, section 7)."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from det_contracts.problems import not_found
from services.gateway import paging
from services.gateway.present import agent, job
from services.gateway.web.visit import Asked, UserVisit

router = APIRouter()


@router.get("/agents")
async def agents(visit: Asked) -> Response:
    """All workers that are here, by id or by when they registered."""
    found = agent.agents(visit.catalogue.state)
    if visit.params.sort("ID") == "TIME":
        found.sort(key=lambda one: (one["registeredTime"], one["id"]))
    window = visit.params.window()
    page, pagination = paging.cut(found[::-1] if window.descending else found, window)
    return visit.answer({"agents": page, "pagination": pagination})


def _agent(visit: UserVisit, agent_id: str) -> dict[str, Any]:
    for found in agent.agents(visit.catalogue.state):
        if found["id"] == agent_id:
            return found
    raise not_found("agent", agent_id)


@router.get("/agents/{agent_id}")
async def get_agent(visit: Asked, agent_id: str) -> Response:
    """One worker."""
    return visit.answer({"agent": _agent(visit, agent_id)})


@router.get("/agents/{agent_id}/slots")
async def slots(visit: Asked, agent_id: str) -> Response:
    """The slots of one worker."""
    return visit.answer({"slots": list(_agent(visit, agent_id)["slots"].values())})


@router.get("/agents/{agent_id}/slots/{slot_id}")
async def slot(visit: Asked, agent_id: str, slot_id: str) -> Response:
    """One slot."""
    found = _agent(visit, agent_id)["slots"].get(f"/agents/{agent_id}/slots/{slot_id}")
    if found is None:
        raise not_found(f"slot of agent '{agent_id}'", slot_id)
    return visit.answer({"slot": found})


@router.get("/resource-pools")
async def pools(visit: Asked) -> Response:
    """The one pool, with its queue's counts."""
    state = visit.catalogue.state
    found = [agent.pool(state) | {"stats": job.stats(state)["stats"]}]
    page, pagination = paging.cut(found, visit.params.window())
    return visit.answer({"resourcePools": page, "pagination": pagination})


def _jobs(visit: UserVisit) -> tuple[list[dict[str, Any]], dict[str, int]]:
    found = job.jobs(visit.catalogue.state)
    states = visit.params.names("states", "STATE_")
    if states:
        found = [one for one in found if one["summary"]["state"].removeprefix("STATE_") in states]
    if visit.params.text("resource_pool") not in ("", agent.POOL):
        found = []
    window = visit.params.window()
    return paging.cut(found[::-1] if window.descending else found, window)


@router.get("/job-queues")
async def queue(visit: Asked) -> Response:
    """Who is next."""
    page, pagination = _jobs(visit)
    return visit.answer({"jobs": page, "pagination": pagination})


@router.get("/job-queues-v2")
async def queue_v2(visit: Asked) -> Response:
    """Who is next; each job wrapped once more."""
    page, pagination = _jobs(visit)
    return visit.answer({"jobs": [{"full": one} for one in page], "pagination": pagination})


@router.get("/job-queues/stats")
async def stats(visit: Asked) -> Response:
    """How many wait and run, per pool."""
    wanted = visit.params.texts("resource_pools")
    found = [job.stats(visit.catalogue.state)] if not wanted or agent.POOL in wanted else []
    return visit.answer({"results": found})
