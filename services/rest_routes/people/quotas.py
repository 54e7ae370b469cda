"""Quotas of users, groups and workspaces (our addition)."""

from __future__ import annotations

from starlette.responses import Response

from det_contracts.commands import SetQuota
from services.catalogue.rights import is_authorized
from services.kit import paging
from services.kit.authz.access_check import AccessRequest
from services.people import quotas as holders
from services.people import workspace_records
from services.rest_requests.api_call import Authenticated
from services.rest_requests.bodies_of_people import QuotaBody
from services.rest_requests.path_parameters import QuotaHolder
from services.rest_routes.people import quota_use as quotas
from services.rest_routes.present import quota as present
from services.web.query import FromQuery, Paged
from services.web.routes import Routes

router = Routes()


@router.get("/quotas", ("logged_in", "cluster"))
async def list_quotas(call: Authenticated, query: FromQuery[Paged]) -> Response:
    """The quotas that apply to the user, with current usage. Administrators see all quotas."""
    state, id = call.catalogue.state, call.user.id
    visible_workspaces = {
        workspace_id
        for workspace_id in workspace_records.workspaces(state)
        if call.visibility.includes_workspace(workspace_id)
    }
    everything = is_authorized(state, call.session(), AccessRequest("administer_cluster"))
    visible_holders = [
        holder
        for holder in sorted(state.quotas)
        if everything or holders.applies_to(state, holder, id, visible_workspaces)
    ]
    page, pagination = paging.cut(visible_holders, query.window)
    used = await quotas.current_usage(call.peers, call.catalogue.position) if page else {}
    shown = [present.quota(state, holder, used) for holder in page]
    return call.answer({"quotas": shown, "pagination": pagination})


@router.put("/quotas/{holder}", ("administer_cluster", "cluster"))
async def set_quota(call: Authenticated, holder: QuotaHolder, body: QuotaBody) -> Response:
    """Set the limits of `user-<id>`, `group-<id>` or `workspace-<id>`. Missing or null means no limit."""
    limits = body.model_dump()
    await call.peers.command(SetQuota(holder=holder, user=call.user.username, **limits))
    state = call.catalogue.state
    if holder not in state.quotas:
        return call.answer({"quota": None})
    return call.answer(
        {
            "quota": present.quota(
                state, holder, await quotas.current_usage(call.peers, call.catalogue.position)
            )
        }
    )


@router.delete("/quotas/{holder}", ("administer_cluster", "cluster"))
async def remove_quota(call: Authenticated, holder: QuotaHolder) -> Response:
    """Remove a quota."""
    await call.peers.command(SetQuota(holder=holder, user=call.user.username))
    return call.answer({})
