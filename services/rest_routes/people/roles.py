"""Roles, their assignments, and changes to them (REST spec, section 2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from starlette.responses import Response

from det_contracts.commands import Assignment, AssignRoles
from det_contracts.events.gateway import Grant
from det_contracts.problems import invalid, not_found
from services.catalogue.rights import is_authorized
from services.kit import paging
from services.kit.authz.access_check import AccessRequest
from services.kit.authz.permissions import CLUSTER_ROLES, ROLE_IDS, Role
from services.kit.authz.roles import groups_of, holder
from services.kit.paging import Window
from services.people import groups, users, workspace_records
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.bodies_of_people import AssignmentsBody, GivenRole, RoleIds, RoleSearch
from services.rest_routes.present import group as of_group
from services.rest_routes.present import role as present
from services.rest_routes.present.user import user
from services.web.query import FromQuery, QueryModel
from services.web.routes import Routes

router = Routes()
HolderGrants = list[tuple[str, Grant]]


@router.get("/permissions/summary", ("logged_in", "cluster"))
async def summary(call: Authenticated) -> Response:
    """The user's own roles, held directly and through groups."""
    state, id = call.catalogue.state, call.user.id
    grants = [grant for _, grant in present.user_grants(state, id, groups_of(state, id))]
    return call.answer({"roles": present.roles_of(grants), "assignments": present.scopes(grants)})


@router.get("/roles", ("logged_in", "cluster"))
async def list_roles(call: Authenticated) -> Response:
    """All roles (our addition)."""
    return call.answer({"roles": [present.role(name) for name in ROLE_IDS]})


@router.post("/roles/search", ("logged_in", "cluster"), reads=True)
async def search(call: Authenticated, body: RoleSearch) -> Response:
    """All roles."""
    return _page(call, list(ROLE_IDS), body)


@router.post("/roles/search/by-assignability", ("logged_in", "cluster"), reads=True)
async def assignable(call: Authenticated, body: RoleSearch) -> Response:
    """The roles that can be assigned in a workspace, or in the whole cluster."""
    names = [name for name in ROLE_IDS if not body.workspace_id or name not in CLUSTER_ROLES]
    return _page(call, names, body)


def _page(call: UserCall, names: list[Role], body: RoleSearch) -> Response:
    page, pagination = paging.cut(names, Window(body.offset, body.limit))
    return call.answer({"roles": [present.role(name) for name in page], "pagination": pagination})


@router.post("/roles/search/by-ids", ("logged_in", "cluster"), reads=True)
async def by_ids(call: Authenticated, body: RoleIds) -> Response:
    """Some roles with their assignments."""
    state = call.catalogue.state
    administrators = (
        holder("user", listed_user.id) for listed_user in users.all_users(state) if listed_user.admin
    )
    names = sorted({*state.roles, *administrators})
    visible = _visible_grants(
        call, ((name, grant) for name in names for grant in present.grants_of(state, name))
    )
    roles = [present.role_with_assignments(state, _role(id), visible) for id in body.role_ids]
    return call.answer({"roles": roles})


@router.get("/roles/search/by-user/{user_id}", ("logged_in", "cluster"))
async def by_user(call: Authenticated, user_id: int) -> Response:
    """The roles of a user, held directly and through groups."""
    state = call.catalogue.state
    users.by_id(state, user_id)
    visible = _visible_grants(call, present.user_grants(state, user_id, groups_of(state, user_id)))
    names = [name for name in ROLE_IDS if any(grant.role == name for _, grant in visible)]
    return call.answer({"roles": [present.role_with_assignments(state, name, visible) for name in names]})


@router.get("/roles/search/by-group/{group_id}", ("logged_in", "cluster"))
async def by_group(call: Authenticated, group_id: int) -> Response:
    """The roles of a group."""
    state = call.catalogue.state
    groups.by_id(state, group_id)
    name = holder("group", group_id)
    grants = [
        grant
        for _, grant in _visible_grants(call, ((name, grant) for grant in present.grants_of(state, name)))
    ]
    return call.answer({"roles": present.roles_of(grants), "assignments": present.scopes(grants)})


class NameQuery(QueryModel):
    """GET /roles/workspace/{workspace_id}"""

    name: str = ""
    """A part of the name of a group or user."""


@router.get("/roles/workspace/{workspace_id}", ("view", "workspace"))
async def in_workspace(call: Authenticated, workspace_id: int, query: FromQuery[NameQuery]) -> Response:
    """The role assignments of a workspace."""
    state = call.catalogue.state
    workspace_records.workspace(state, workspace_id)
    names = list(groups.holders_in(state, workspace_id))
    assigned = [(n, g) for n in names for g in present.grants_of(state, n) if g.workspace_id == workspace_id]
    holders = [groups.parse_holder(name) for name in names]
    in_groups = [of_group.details(state, id) for kind, id in holders if kind == "group"]
    directly = [user(users.by_id(state, id)) for kind, id in holders if kind == "user"]
    part = query.name.lower()
    roles = [name for name in ROLE_IDS if any(grant.role == name for _, grant in assigned)]
    return call.answer(
        {
            "groups": [group for group in in_groups if part in group["name"].lower()],
            "usersAssignedDirectly": [
                assigned_user for assigned_user in directly if part in assigned_user["username"].lower()
            ],
            "assignments": [present.role_with_assignments(state, name, assigned) for name in roles],
        }
    )


@router.post("/roles/add-assignments", ("assign_roles", "body"))
async def add(call: Authenticated, body: AssignmentsBody) -> Response:
    """Assign roles: all of them, or none."""
    await call.peers.command(AssignRoles(add=_assignments(body), user=call.user.username))
    return call.answer({})


@router.post("/roles/remove-assignments", ("assign_roles", "body"))
async def remove(call: Authenticated, body: AssignmentsBody) -> Response:
    """Remove role assignments: all of them, or none."""
    await call.peers.command(AssignRoles(remove=_assignments(body), user=call.user.username))
    return call.answer({})


def _assignments(body: AssignmentsBody) -> tuple[Assignment, ...]:
    of_users = (
        Assignment(holder("user", assignment.user_id), _grant(assignment.role_assignment))
        for assignment in body.user_role_assignments
    )
    of_groups = (
        Assignment(holder("group", assignment.group_id), _grant(assignment.role_assignment))
        for assignment in body.group_role_assignments
    )
    return (*of_users, *of_groups)


def _grant(assigned: GivenRole) -> Grant:
    if assigned.scope_cluster and assigned.scope_workspace_id:
        raise invalid("a role is given for a workspace (scopeWorkspaceId) or for the cluster (scopeCluster)")
    return Grant(_role(assigned.role.role_id), assigned.scope_workspace_id)


def _role(id: int) -> Role:
    if id not in present.ROLES_BY_ID:
        raise not_found("role", id)
    return present.ROLES_BY_ID[id]


def _visible_grants(call: UserCall, grants: Iterable[tuple[str, Grant]]) -> HolderGrants:
    """Leave out grants in workspaces that the user may not see."""
    is_visible: dict[int, Any] = {0: True}
    visible = []
    for name, grant in grants:
        id = grant.workspace_id
        if id not in is_visible:
            is_visible[id] = is_authorized(
                call.catalogue.state, call.session(), AccessRequest("view", "workspace", id)
            )
        if is_visible[id]:
            visible.append((name, grant))
    return visible
