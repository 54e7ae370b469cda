"""User groups, available in both authorization modes (REST spec, section 2)."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from det_contracts.commands import RemoveGroup, SetGroup
from det_contracts.problems import invalid
from services.kit import paging
from services.kit.authz.roles import groups_of
from services.kit.paging import Window
from services.people import groups
from services.rest_requests.bodies_of_people import GroupBody, GroupSearch
from services.rest_requests.visit import Authenticated, UserVisit
from services.rest_routes.present import group as present
from services.web.query import FromQuery, Paged

router = APIRouter()


@router.post("/groups")
async def create(visit: Authenticated, wish: GroupBody) -> Response:
    """Create a group."""
    command = SetGroup(name=wish.name or "", add=tuple(wish.add_users), user=visit.user.username)
    return _answer(visit, await visit.create(command))


@router.get("/groups")
async def list_groups(visit: Authenticated, query: FromQuery[Paged]) -> Response:
    """All groups, by id (our addition)."""
    state = visit.catalogue.state
    page, pagination = paging.cut(sorted(state.groups), query.window)
    shown = [present.summary(state, id) for id in page]
    return visit.answer({"groups": shown, "pagination": pagination})


@router.post("/groups/search")
async def search(visit: Authenticated, wish: GroupSearch) -> Response:
    """Groups by id: those with exactly this name, or those that a user belongs to."""
    state = visit.catalogue.state
    found = groups_of(state, wish.user_id) if wish.user_id else sorted(state.groups)
    found = [id for id in found if wish.name in ("", state.groups[id].name)]
    page, pagination = paging.cut(list(found), Window(wish.offset, wish.limit))
    shown = [present.summary(state, id) for id in page]
    return visit.answer({"groups": shown, "pagination": pagination})


@router.get("/groups/{group_id}")
async def one(visit: Authenticated, group_id: int) -> Response:
    """A group and its members."""
    return _answer(visit, group_id)


@router.put("/groups/{group_id}")
async def change(visit: Authenticated, group_id: int, wish: GroupBody) -> Response:
    """Rename a group, add members and remove members."""
    both = set(wish.add_users) & set(wish.remove_users)
    if both:
        raise invalid(f"user {min(both)} is to be added and removed at once")
    groups.by_id(visit.catalogue.state, group_id)
    name = msgspec.UNSET if wish.name is None else wish.name
    add, remove = tuple(wish.add_users), tuple(wish.remove_users)
    await visit.peers.command(
        SetGroup(group_id=group_id, name=name, add=add, remove=remove, user=visit.user.username)
    )
    return _answer(visit, group_id)


@router.delete("/groups/{group_id}")
async def remove(visit: Authenticated, group_id: int) -> Response:
    """Delete a group and its role assignments."""
    await visit.peers.command(RemoveGroup(group_id=group_id, user=visit.user.username))
    return visit.answer({})


def _answer(visit: UserVisit, id: int) -> Response:
    return visit.answer({"group": present.details(visit.catalogue.state, id)})
