"""Agents and their slots (REST spec, section 7)."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from starlette.responses import Response

from det_contracts.commands import SwitchSlot, SwitchWorker
from det_contracts.problems import not_found
from services.gateway.determined.present import agent
from services.gateway.http import records
from services.gateway.http.answers import answering_one, answering_page
from services.gateway.http.bodies import Disable
from services.gateway.http.visit import Asked, UserVisit
from services.kit import paging
from services.web.query import Asks, Paged, one_of

router = APIRouter()


class AgentsAsked(Paged):
    """GET /agents"""

    sort_by: Annotated[str, one_of("SORT_BY_", ("ID", "TIME"))] = "ID"


@router.get("/agents", **answering_page("agents", records.Agent))
async def agents(visit: Asked, query: Asks[AgentsAsked]) -> Response:
    """All connected workers, by id or by registration time."""
    found = agent.agents(visit.catalogue.state)
    if query.sort_by == "TIME":
        found.sort(key=lambda one: (one["registeredTime"], one["id"]))
    page, pagination = paging.cut(found, query.window)
    return visit.answer({"agents": page, "pagination": pagination})


def _agent(visit: UserVisit, agent_id: str) -> dict[str, Any]:
    for found in agent.agents(visit.catalogue.state):
        if found["id"] == agent_id:
            return found
    raise not_found("agent", agent_id)


@router.get("/agents/{agent_id}", **answering_one("agent", records.Agent))
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


def _switched(visit: UserVisit, agent_id: str, enabled: bool, drain: bool) -> SwitchWorker:
    return SwitchWorker(worker_id=agent_id, enabled=enabled, drain=drain, user=visit.user.username)


@router.post("/agents/{agent_id}/enable")
async def enable_agent(visit: Asked, agent_id: str) -> Response:
    """Allow new work on a worker."""
    await visit.peers.command(_switched(visit, agent_id, True, False))
    return visit.answer({"agent": _agent(visit, agent_id)})


@router.post("/agents/{agent_id}/disable")
async def disable_agent(visit: Asked, agent_id: str, wish: Disable | None = None) -> Response:
    """Stop new work on a worker. Running work is killed unless the worker is to drain."""
    drain = wish is not None and wish.drain
    await visit.peers.command(_switched(visit, agent_id, False, drain))
    return visit.answer({"agent": _agent(visit, agent_id)})


async def _switch_slot(visit: UserVisit, agent_id: str, slot_id: str, enabled: bool, drain: bool) -> Response:
    if not slot_id.isdecimal():
        raise not_found(f"slot of agent '{agent_id}'", slot_id)
    wish = SwitchSlot(
        worker_id=agent_id, slot_id=int(slot_id), enabled=enabled, drain=drain, user=visit.user.username
    )
    await visit.peers.command(wish)
    return await slot(visit, agent_id, slot_id)


@router.post("/agents/{agent_id}/slots/{slot_id}/enable")
async def enable_slot(visit: Asked, agent_id: str, slot_id: str) -> Response:
    """Allow new work on a slot."""
    return await _switch_slot(visit, agent_id, slot_id, True, False)


@router.post("/agents/{agent_id}/slots/{slot_id}/disable")
async def disable_slot(visit: Asked, agent_id: str, slot_id: str, wish: Disable | None = None) -> Response:
    """Stop new work on a slot. Running work is killed unless the slot is to drain."""
    return await _switch_slot(visit, agent_id, slot_id, False, wish is not None and wish.drain)
