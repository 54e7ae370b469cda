"""Which workspaces may use which resource pools (REST spec, section 8)."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from det_contracts.administration import Binding, BindPool
from det_contracts.problems import not_found
from services.kit import paging
from services.kit.pool_bindings import may_use
from services.people import workspace_records
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.bodies import BindingBody
from services.web.query import FromQuery, Paged
from services.web.routes import Routes

router = Routes()
PATH = "/resource-pools/{name}/workspace-bindings"


@router.get(PATH, ("logged_in", "cluster"))
async def workspaces_of(call: Authenticated, name: str, query: FromQuery[Paged]) -> Response:
    """The workspaces that a pool is bound to. If there are none, all workspaces may use it."""
    await check_pool_exists(call, name)
    bound = call.catalogue.state.bindings.get(name)
    visibility = call.visibility
    visible = visibility.filter_visible(
        visibility.includes_workspace, bound.workspaces if bound is not None else ()
    )
    page, pagination = paging.cut(visible, query.window)
    return call.answer({"workspaceIds": page, "pagination": pagination})


@router.post(PATH, ("administer_cluster", "cluster"))
async def bind(call: Authenticated, name: str, body: BindingBody) -> Response:
    """Bind a pool to more workspaces. From then on, only bound workspaces may use it."""
    return await _change(call, name, body, "add")


@router.delete(PATH, ("administer_cluster", "cluster"))
async def unbind(call: Authenticated, name: str, body: BindingBody) -> Response:
    """Unbind workspaces from a pool. Once none is left, all may use it."""
    return await _change(call, name, body, "remove")


@router.put(PATH, ("administer_cluster", "cluster"))
async def rebind(call: Authenticated, name: str, body: BindingBody) -> Response:
    """Replace the workspaces that a pool is bound to. With an empty list, all may use it."""
    return await _change(call, name, body, "replace")


@router.get("/workspaces/{id}/available-resource-pools", ("view", "workspace"))
async def pools_of(call: Authenticated, id: int, query: FromQuery[Paged]) -> Response:
    """The names of the pools that a workspace may use."""
    workspace_records.workspace(call.catalogue.state, id)
    rows = await call.peers.pools()
    pool_names = sorted(row.name for row in rows if may_use(call.catalogue.state, row.name, id))
    page, pagination = paging.cut(pool_names, query.window)
    return call.answer({"resourcePools": page, "pagination": pagination})


async def _change(call: UserCall, name: str, body: BindingBody, change: Binding) -> Response:
    if change != "remove":
        # Unbinding also works for a pool that was removed from the configuration.
        await check_pool_exists(call, name)
    state = call.catalogue.state
    named = [
        workspace_records.workspace_named(state, workspace_name).workspace_id
        for workspace_name in body.workspace_names or ()
    ]
    ids = tuple(dict.fromkeys([*(body.workspace_ids or ()), *named]))
    command = BindPool(pool=name, workspaces=ids, change=change, user=call.user.username)
    await call.peers.command(command)
    return call.answer({})


async def check_pool_exists(call: UserCall, *names: Any) -> None:
    """Raise `Refused` (404) for a pool that is not configured and has no workers."""
    pool_names = {row.name for row in await call.peers.pools()}
    for name in names:
        if name not in pool_names:
            raise not_found("resource pool", name)
