"""Agents and their slots (REST spec, section 7)."""

from __future__ import annotations

from typing import Annotated, Any

from starlette.responses import Response

from det_contracts import ids
from det_contracts.commands import SwitchSlot, SwitchWorker
from det_contracts.problems import not_found
from services.kit import paging
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.bodies import Disable
from services.rest_routes.present import agent, records
from services.rest_routes.present.answers import page_schema, record_schema
from services.web.query import FromQuery, Paged, enum_value
from services.web.routes import Routes

router = Routes()


class AgentsQuery(Paged):
    """GET /agents"""

    sort_by: Annotated[str, enum_value("SORT_BY_", ("ID", "TIME"))] = "ID"
    label: str = ""


@router.get("/agents", ("logged_in", "cluster"), **page_schema("agents", records.Agent))
async def agents(call: Authenticated, query: FromQuery[AgentsQuery]) -> Response:
    """All connected workers, by id or by registration time."""
    workers = [
        worker for worker in agent.agents(call.catalogue.state) if query.label in ("", worker["label"])
    ]
    if query.sort_by == "TIME":
        workers.sort(key=lambda worker: (worker["registeredTime"], worker["id"]))
    page, pagination = paging.cut(workers, query.window)
    return call.answer({"agents": page, "pagination": pagination})


def _agent(call: UserCall, agent_id: str) -> dict[str, Any]:
    for worker in agent.agents(call.catalogue.state):
        if worker["id"] == agent_id:
            return worker
    raise not_found("agent", agent_id)


@router.get("/agents/{agent_id}", ("logged_in", "cluster"), **record_schema("agent", records.Agent))
async def get_agent(call: Authenticated, agent_id: str) -> Response:
    """One worker."""
    return call.answer({"agent": _agent(call, agent_id)})


@router.get("/agents/{agent_id}/slots", ("logged_in", "cluster"))
async def slots(call: Authenticated, agent_id: str) -> Response:
    """The slots of one worker."""
    return call.answer({"slots": list(_agent(call, agent_id)["slots"].values())})


@router.get("/agents/{agent_id}/slots/{slot_id}", ("logged_in", "cluster"))
async def slot(call: Authenticated, agent_id: str, slot_id: str) -> Response:
    """One slot."""
    requested_slot = _agent(call, agent_id)["slots"].get(f"/agents/{agent_id}/slots/{slot_id}")
    if requested_slot is None:
        raise not_found(f"slot of agent '{agent_id}'", slot_id)
    return call.answer({"slot": requested_slot})


def _switch_command(call: UserCall, agent_id: str, enabled: bool, drain: bool) -> SwitchWorker:
    return SwitchWorker(worker_id=agent_id, enabled=enabled, drain=drain, user=call.user.username)


@router.post("/agents/{agent_id}/enable", ("administer_cluster", "cluster"))
async def enable_agent(call: Authenticated, agent_id: str) -> Response:
    """Allow new work on a worker."""
    await call.peers.command(_switch_command(call, agent_id, True, False))
    return call.answer({"agent": _agent(call, agent_id)})


@router.post("/agents/{agent_id}/disable", ("administer_cluster", "cluster"))
async def disable_agent(call: Authenticated, agent_id: str, body: Disable | None = None) -> Response:
    """Stop new work on a worker. Running work is killed unless the worker is to drain."""
    drain = body is not None and body.drain
    await call.peers.command(_switch_command(call, agent_id, False, drain))
    return call.answer({"agent": _agent(call, agent_id)})


async def _switch_slot(call: UserCall, agent_id: str, slot_id: str, enabled: bool, drain: bool) -> Response:
    number = ids.parse_number(slot_id)
    if number is None:
        raise not_found(f"slot of agent '{agent_id}'", slot_id)
    command = SwitchSlot(
        worker_id=agent_id, slot_id=number, enabled=enabled, drain=drain, user=call.user.username
    )
    await call.peers.command(command)
    return await slot(call, agent_id, slot_id)


@router.post("/agents/{agent_id}/slots/{slot_id}/enable", ("administer_cluster", "cluster"))
async def enable_slot(call: Authenticated, agent_id: str, slot_id: str) -> Response:
    """Allow new work on a slot."""
    return await _switch_slot(call, agent_id, slot_id, True, False)


@router.post("/agents/{agent_id}/slots/{slot_id}/disable", ("administer_cluster", "cluster"))
async def disable_slot(
    call: Authenticated, agent_id: str, slot_id: str, body: Disable | None = None
) -> Response:
    """Stop new work on a slot. Running work is killed unless the slot is to drain."""
    return await _switch_slot(call, agent_id, slot_id, False, body is not None and body.drain)
