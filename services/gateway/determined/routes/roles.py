"""Roles, their assignments, and changes to them (REST spec, section 2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from det_contracts.commands import Assignment, AssignRoles
from det_contracts.events.gateway import Grant
from det_contracts.problems import invalid, not_found
from services.catalogue.rights import may
from services.gateway.determined.present import group as of_group
from services.gateway.determined.present import role as present
from services.gateway.determined.present.user import user
from services.gateway.http.bodies_of_people import AssignmentsBody, GivenRole, RoleIds, RoleSearch
from services.gateway.http.visit import Asked, UserVisit
from services.kit import paging
from services.kit.authz.judge import Wish
from services.kit.authz.permissions import CLUSTER_ROLES, ROLE_IDS, Role
from services.kit.authz.roles import groups_of, holder
from services.kit.paging import Window
from services.people import groups, places, users

router = APIRouter()
Told = list[tuple[str, Grant]]


@router.get("/permissions/summary")
async def summary(visit: Asked) -> Response:
    """The user's own roles, held directly and through groups."""
    state, id = visit.catalogue.state, visit.user.id
    grants = [grant for _, grant in present.through(state, id, groups_of(state, id))]
    return visit.answer({"roles": present.roles_of(grants), "assignments": present.scopes(grants)})


@router.get("/roles")
async def list_roles(visit: Asked) -> Response:
    """All roles (our addition)."""
    return visit.answer({"roles": [present.role(name) for name in ROLE_IDS]})


@router.post("/roles/search")
async def search(visit: Asked, wish: RoleSearch) -> Response:
    """All roles."""
    return _page(visit, list(ROLE_IDS), wish)


@router.post("/roles/search/by-assignability")
async def assignable(visit: Asked, wish: RoleSearch) -> Response:
    """The roles that can be assigned in a workspace, or in the whole cluster."""
    found = [name for name in ROLE_IDS if not wish.workspace_id or name not in CLUSTER_ROLES]
    return _page(visit, found, wish)


def _page(visit: UserVisit, found: list[Role], wish: RoleSearch) -> Response:
    page, pagination = paging.cut(found, Window(wish.offset, wish.limit))
    return visit.answer({"roles": [present.role(name) for name in page], "pagination": pagination})


@router.post("/roles/search/by-ids")
async def by_ids(visit: Asked, wish: RoleIds) -> Response:
    """Some roles with their assignments."""
    state = visit.catalogue.state
    administrators = (holder("user", one.id) for one in users.everybody(state) if one.admin)
    names = sorted({*state.roles, *administrators})
    told = _seen(visit, ((name, grant) for name in names for grant in present.held_by(state, name)))
    found = [present.with_assignments(state, _role(id), told) for id in wish.role_ids]
    return visit.answer({"roles": found})


@router.get("/roles/search/by-user/{user_id}")
async def by_user(visit: Asked, user_id: int) -> Response:
    """The roles of a user, held directly and through groups."""
    state = visit.catalogue.state
    users.by_id(state, user_id)
    told = _seen(visit, present.through(state, user_id, groups_of(state, user_id)))
    names = [name for name in ROLE_IDS if any(grant.role == name for _, grant in told)]
    return visit.answer({"roles": [present.with_assignments(state, name, told) for name in names]})


@router.get("/roles/search/by-group/{group_id}")
async def by_group(visit: Asked, group_id: int) -> Response:
    """The roles of a group."""
    state = visit.catalogue.state
    groups.by_id(state, group_id)
    name = holder("group", group_id)
    grants = [grant for _, grant in _seen(visit, ((name, grant) for grant in present.held_by(state, name)))]
    return visit.answer({"roles": present.roles_of(grants), "assignments": present.scopes(grants)})


@router.get("/roles/workspace/{workspace_id}")
async def in_workspace(visit: Asked, workspace_id: int) -> Response:
    """The role assignments of a workspace."""
    state = visit.catalogue.state
    places.workspace(state, workspace_id)
    names = list(groups.holders_in(state, workspace_id))
    told = [(n, g) for n in names for g in present.held_by(state, n) if g.workspace_id == workspace_id]
    kept = [groups.of_holder(name) for name in names]
    roles = [name for name in ROLE_IDS if any(grant.role == name for _, grant in told)]
    return visit.answer(
        {
            "groups": [of_group.whole(state, id) for kind, id in kept if kind == "group"],
            "usersAssignedDirectly": [user(users.by_id(state, id)) for kind, id in kept if kind == "user"],
            "assignments": [present.with_assignments(state, name, told) for name in roles],
        }
    )


@router.post("/roles/add-assignments")
async def add(visit: Asked, wish: AssignmentsBody) -> Response:
    """Assign roles: all of them, or none."""
    await visit.peers.command(AssignRoles(add=_assignments(wish), user=visit.user.username))
    return visit.answer({})


@router.post("/roles/remove-assignments")
async def remove(visit: Asked, wish: AssignmentsBody) -> Response:
    """Remove role assignments: all of them, or none."""
    await visit.peers.command(AssignRoles(remove=_assignments(wish), user=visit.user.username))
    return visit.answer({})


def _assignments(wish: AssignmentsBody) -> tuple[Assignment, ...]:
    of_users = (
        Assignment(holder("user", one.user_id), _grant(one.role_assignment))
        for one in wish.user_role_assignments
    )
    of_groups = (
        Assignment(holder("group", one.group_id), _grant(one.role_assignment))
        for one in wish.group_role_assignments
    )
    return (*of_users, *of_groups)


def _grant(told: GivenRole) -> Grant:
    if told.scope_cluster and told.scope_workspace_id:
        raise invalid("a role is given for a workspace (scopeWorkspaceId) or for the cluster (scopeCluster)")
    return Grant(_role(told.role.role_id), told.scope_workspace_id)


def _role(id: int) -> Role:
    if id not in present.NAMES:
        raise not_found("role", id)
    return present.NAMES[id]


def _seen(visit: UserVisit, told: Iterable[tuple[str, Grant]]) -> Told:
    """Leave out grants in workspaces that the user may not see."""
    seen: dict[int, Any] = {0: True}
    found = []
    for name, grant in told:
        id = grant.workspace_id
        if id not in seen:
            seen[id] = may(visit.catalogue.state, visit.session(), Wish("view", "workspace", id))
        if seen[id]:
            found.append((name, grant))
    return found
