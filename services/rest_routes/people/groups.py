"""User groups, available in both authorization modes (REST spec, section 2)."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from det_contracts.commands import RemoveGroup, SetGroup
from det_contracts.problems import invalid
from services.kit import paging
from services.kit.authz.roles import groups_of
from services.kit.paging import Window
from services.people import groups
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.bodies_of_people import GroupBody, GroupSearch, NewGroup
from services.rest_routes.present import group as present
from services.web.query import FromQuery, Paged
from services.web.routes import Routes

router = Routes()


@router.post("/groups", ("administer_users", "cluster"))
async def create(call: Authenticated, body: NewGroup) -> Response:
    """Create a group."""
    command = SetGroup(name=body.name or "", add=tuple(body.add_users), user=call.user.username)
    return _answer(call, await call.create(command))


@router.get("/groups", ("logged_in", "cluster"))
async def list_groups(call: Authenticated, query: FromQuery[Paged]) -> Response:
    """All groups, by id (our addition)."""
    state = call.catalogue.state
    page, pagination = paging.cut(sorted(state.groups), query.window)
    shown = [present.summary(state, id) for id in page]
    return call.answer({"groups": shown, "pagination": pagination})


@router.post("/groups/search", ("logged_in", "cluster"), reads=True)
async def search(call: Authenticated, body: GroupSearch) -> Response:
    """Groups by id: those with exactly this name, or those that a user belongs to."""
    state = call.catalogue.state
    group_ids = groups_of(state, body.user_id) if body.user_id else sorted(state.groups)
    group_ids = [id for id in group_ids if body.name in ("", state.groups[id].name)]
    page, pagination = paging.cut(list(group_ids), Window(body.offset, body.limit))
    shown = [present.summary(state, id) for id in page]
    return call.answer({"groups": shown, "pagination": pagination})


@router.get("/groups/{group_id}", ("logged_in", "cluster"))
async def get(call: Authenticated, group_id: int) -> Response:
    """A group and its members."""
    return _answer(call, group_id)


@router.put("/groups/{group_id}", ("administer_users", "cluster"))
async def change(call: Authenticated, group_id: int, body: GroupBody) -> Response:
    """Rename a group, add members and remove members."""
    both = set(body.add_users) & set(body.remove_users)
    if both:
        raise invalid(f"user {min(both)} is to be added and removed at once")
    groups.by_id(call.catalogue.state, group_id)
    name = msgspec.UNSET if body.name is None else body.name
    add, remove = tuple(body.add_users), tuple(body.remove_users)
    await call.peers.command(
        SetGroup(group_id=group_id, name=name, add=add, remove=remove, user=call.user.username)
    )
    return _answer(call, group_id)


@router.delete("/groups/{group_id}", ("administer_users", "cluster"))
async def remove(call: Authenticated, group_id: int) -> Response:
    """Delete a group and its role assignments."""
    await call.peers.command(RemoveGroup(group_id=group_id, user=call.user.username))
    return call.answer({})


def _answer(call: UserCall, id: int) -> Response:
    return call.answer({"group": present.details(call.catalogue.state, id)})
