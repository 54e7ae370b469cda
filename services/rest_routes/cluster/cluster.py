"""Agents and their slots (REST spec, section 7)."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from starlette.responses import Response

from det_contracts import ids
from det_contracts.commands import SwitchSlot, SwitchWorker
from det_contracts.problems import not_found
from services.kit import paging
from services.rest_requests.bodies import Disable
from services.rest_requests.visit import Authenticated, UserVisit
from services.rest_routes.present import agent, records
from services.rest_routes.present.answers import page_schema, record_schema
from services.web.query import FromQuery, Paged, enum_value

router = APIRouter()


class AgentsQuery(Paged):
    """GET /agents"""

    sort_by: Annotated[str, enum_value("SORT_BY_", ("ID", "TIME"))] = "ID"
    label: str = ""


@router.get("/agents", **page_schema("agents", records.Agent))
async def agents(visit: Authenticated, query: FromQuery[AgentsQuery]) -> Response:
    """All connected workers, by id or by registration time."""
    found = [one for one in agent.agents(visit.catalogue.state) if query.label in ("", one["label"])]
    if query.sort_by == "TIME":
        found.sort(key=lambda one: (one["registeredTime"], one["id"]))
    page, pagination = paging.cut(found, query.window)
    return visit.answer({"agents": page, "pagination": pagination})


def _agent(visit: UserVisit, agent_id: str) -> dict[str, Any]:
    for found in agent.agents(visit.catalogue.state):
        if found["id"] == agent_id:
            return found
    raise not_found("agent", agent_id)


@router.get("/agents/{agent_id}", **record_schema("agent", records.Agent))
async def get_agent(visit: Authenticated, agent_id: str) -> Response:
    """One worker."""
    return visit.answer({"agent": _agent(visit, agent_id)})


@router.get("/agents/{agent_id}/slots")
async def slots(visit: Authenticated, agent_id: str) -> Response:
    """The slots of one worker."""
    return visit.answer({"slots": list(_agent(visit, agent_id)["slots"].values())})


@router.get("/agents/{agent_id}/slots/{slot_id}")
async def slot(visit: Authenticated, agent_id: str, slot_id: str) -> Response:
    """One slot."""
    found = _agent(visit, agent_id)["slots"].get(f"/agents/{agent_id}/slots/{slot_id}")
    if found is None:
        raise not_found(f"slot of agent '{agent_id}'", slot_id)
    return visit.answer({"slot": found})


def _switch_command(visit: UserVisit, agent_id: str, enabled: bool, drain: bool) -> SwitchWorker:
    return SwitchWorker(worker_id=agent_id, enabled=enabled, drain=drain, user=visit.user.username)


@router.post("/agents/{agent_id}/enable")
async def enable_agent(visit: Authenticated, agent_id: str) -> Response:
    """Allow new work on a worker."""
    await visit.peers.command(_switch_command(visit, agent_id, True, False))
    return visit.answer({"agent": _agent(visit, agent_id)})


@router.post("/agents/{agent_id}/disable")
async def disable_agent(visit: Authenticated, agent_id: str, wish: Disable | None = None) -> Response:
    """Stop new work on a worker. Running work is killed unless the worker is to drain."""
    drain = wish is not None and wish.drain
    await visit.peers.command(_switch_command(visit, agent_id, False, drain))
    return visit.answer({"agent": _agent(visit, agent_id)})


async def _switch_slot(visit: UserVisit, agent_id: str, slot_id: str, enabled: bool, drain: bool) -> Response:
    number = ids.parse_number(slot_id)
    if number is None:
        raise not_found(f"slot of agent '{agent_id}'", slot_id)
    command = SwitchSlot(
        worker_id=agent_id, slot_id=number, enabled=enabled, drain=drain, user=visit.user.username
    )
    await visit.peers.command(command)
    return await slot(visit, agent_id, slot_id)


@router.post("/agents/{agent_id}/slots/{slot_id}/enable")
async def enable_slot(visit: Authenticated, agent_id: str, slot_id: str) -> Response:
    """Allow new work on a slot."""
    return await _switch_slot(visit, agent_id, slot_id, True, False)


@router.post("/agents/{agent_id}/slots/{slot_id}/disable")
async def disable_slot(
    visit: Authenticated, agent_id: str, slot_id: str, wish: Disable | None = None
) -> Response:
    """Stop new work on a slot. Running work is killed unless the slot is to drain."""
    return await _switch_slot(visit, agent_id, slot_id, False, wish is not None and wish.drain)
