"""Which workspaces may use which resource pools (REST spec, section 8)."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from det_contracts.administration import Binding, BindPool
from det_contracts.problems import not_found
from services.kit import paging
from services.kit.pool_bindings import may_use
from services.people import workspace_records
from services.rest_requests.bodies import BindingBody
from services.rest_requests.visit import Authenticated, UserVisit
from services.web.query import FromQuery, Paged

router = APIRouter()
PATH = "/resource-pools/{name}/workspace-bindings"


@router.get(PATH)
async def workspaces_of(visit: Authenticated, name: str, query: FromQuery[Paged]) -> Response:
    """The workspaces that a pool is bound to. If there are none, all workspaces may use it."""
    await check_pool_exists(visit, name)
    bound = visit.catalogue.state.bindings.get(name)
    visibility = visit.visibility
    seen = visibility.filter_visible(
        visibility.includes_workspace, bound.workspaces if bound is not None else ()
    )
    page, pagination = paging.cut(seen, query.window)
    return visit.answer({"workspaceIds": page, "pagination": pagination})


@router.post(PATH)
async def bind(visit: Authenticated, name: str, wish: BindingBody) -> Response:
    """Bind a pool to more workspaces. From then on, only bound workspaces may use it."""
    return await _change(visit, name, wish, "add")


@router.delete(PATH)
async def unbind(visit: Authenticated, name: str, wish: BindingBody) -> Response:
    """Unbind workspaces from a pool. Once none is left, all may use it."""
    return await _change(visit, name, wish, "remove")


@router.put(PATH)
async def rebind(visit: Authenticated, name: str, wish: BindingBody) -> Response:
    """Replace the workspaces that a pool is bound to. With an empty list, all may use it."""
    return await _change(visit, name, wish, "replace")


@router.get("/workspaces/{id}/available-resource-pools")
async def pools_of(visit: Authenticated, id: int, query: FromQuery[Paged]) -> Response:
    """The names of the pools that a workspace may use."""
    workspace_records.workspace(visit.catalogue.state, id)
    rows = await visit.peers.pools()
    found = sorted(row.name for row in rows if may_use(visit.catalogue.state, row.name, id))
    page, pagination = paging.cut(found, query.window)
    return visit.answer({"resourcePools": page, "pagination": pagination})


async def _change(visit: UserVisit, name: str, body: BindingBody, change: Binding) -> Response:
    if change != "remove":
        # Unbinding also works for a pool that was removed from the configuration.
        await check_pool_exists(visit, name)
    state = visit.catalogue.state
    named = [workspace_records.workspace_named(state, one).workspace_id for one in body.workspace_names or ()]
    ids = tuple(dict.fromkeys([*(body.workspace_ids or ()), *named]))
    command = BindPool(pool=name, workspaces=ids, change=change, user=visit.user.username)
    await visit.peers.command(command)
    return visit.answer({})


async def check_pool_exists(visit: UserVisit, *names: Any) -> None:
    """Raise `Refused` (404) for a pool that is not configured and has no workers."""
    known = {row.name for row in await visit.peers.pools()}
    for name in names:
        if name not in known:
            raise not_found("resource pool", name)
