"""Commands that assign and remove roles, and that set the authorization mode.

Being an administrator and holding `ClusterAdmin` are the same fact, which is stored in `UserSet`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from det_contracts.commands import Assignment, AssignRoles, SetAuthz
from det_contracts.events.gateway import AuthzSet, Grant, RolesSet, UserSet
from det_contracts.problems import failed_precondition, invalid, not_found
from services.kit.authz.permissions import CLUSTER_ROLES, ROLES
from services.kit.authz.roles import ALL, Judging, grants_held_by, holder
from services.kit.rules import Call, Result
from services.people import groups, users, workspace_records
from services.people.domain.state import People
from services.people.groups import ADMINISTRATOR

MAX_GRANTS = 10_000
"""Maximum number of grants per holder."""


def assign_roles(state: People, command: AssignRoles, call: Call) -> Result:
    """Assign and remove roles: all of them, or none."""
    for assignment in (*command.add, *command.remove):
        _check(state, assignment.holder, assignment.grant)
    add, remove = set(command.add), set(command.remove)
    if add & remove:
        raise invalid("the same role cannot be given and taken back in one request")
    reason = f"decided by {command.user}"
    events: list[Any] = [
        *_administrator_changes(state, _administrator_ids(add), _administrator_ids(remove), reason)
    ]
    added, removed = _by_holder(add), _by_holder(remove)
    for name in sorted(added.keys() | removed.keys()):
        before = set(grants_held_by(state, name))
        after = (before | added.get(name, set())) - removed.get(name, set())
        if len(after) > MAX_GRANTS:
            raise invalid(f"{name} may hold at most {MAX_GRANTS} roles, not {len(after)}")
        if after != before:
            events.append(RolesSet(name, tuple(sorted(after)), reason))
    return Result(events)


def _is_administration(assignment: Assignment) -> bool:
    """Whether the assignment is stored in `UserSet`."""
    return assignment.grant == ADMINISTRATOR and assignment.holder.startswith("user-")


def _administrator_ids(assignments: set[Assignment]) -> set[int]:
    """The users whose administrator status these assignments set."""
    return {
        groups.parse_holder(assignment.holder)[1]
        for assignment in assignments
        if _is_administration(assignment)
    }


def _by_holder(assignments: set[Assignment]) -> dict[str, set[Grant]]:
    grants_by_holder: dict[str, set[Grant]] = {}
    for assignment in assignments:
        if not _is_administration(assignment):
            grants_by_holder.setdefault(assignment.holder, set()).add(assignment.grant)
    return grants_by_holder


def _administrator_changes(state: People, add: set[int], remove: set[int], reason: str) -> Iterable[UserSet]:
    # Of the command as a whole: two administrators who are removed together leave nobody, though each alone
    # would leave the other.
    if remove and all(id in remove for id in users.administrators(state)):
        raise failed_precondition(
            "no active administrator would be left: make another user an administrator first"
        )
    for id in sorted(add | remove):
        user = users.by_id(state, id)
        if user.admin is not (id in add):
            described = users.user_set_event(user, reason)
            yield msgspec.structs.replace(described, admin=id in add)


def _check(state: People, name: str, grant: Grant) -> None:
    kind, id = groups.parse_holder(name)
    if kind == "user":
        users.by_id(state, id)
    else:
        groups.by_id(state, id)
    if grant.role not in ROLES:
        raise not_found("role", grant.role)
    if grant.workspace_id:
        workspace_records.workspace(state, grant.workspace_id)
        if grant.role in CLUSTER_ROLES:
            raise invalid(f"the role {grant.role} is for the whole cluster: give it without a workspace")


def remove_workspace_roles(state: People, id: int, reason: str) -> list[RolesSet]:
    """The role events for a workspace that is removed."""
    role_events = []
    for name in groups.holders_in(state, id):
        left = tuple(grant for grant in grants_held_by(state, name) if grant.workspace_id != id)
        role_events.append(RolesSet(name, left, reason))
    return role_events


def creator_roles(state: People, user: str, workspace_id: int) -> list[RolesSet]:
    """Make a workspace's creator its administrator, in RBAC mode."""
    id = users.id_by_name(state, user)
    if not id:
        return []
    name = holder("user", id)
    grants = tuple(sorted({*grants_held_by(state, name), Grant("WorkspaceAdmin", workspace_id)}))
    return [RolesSet(name, grants, f"{user} made the workspace")]


def set_authz(state: People, command: SetAuthz, call: Call) -> Result:
    """Set the authorization mode. Has no effect if nothing changes."""
    if state.judging.get(ALL, Judging("basic")).mode == command.mode:
        return Result()
    role_events = _owner_grants(state) if command.mode == "rbac" else []
    return Result([*role_events, AuthzSet(command.mode, "the gateway's settings say so: STEADFAST_AUTHZ")])


def _owner_grants(state: People) -> list[RolesSet]:
    """The grants that let owners keep administering their workspaces when RBAC is turned on.

    An owner who already holds a role in the workspace keeps only that role, which was assigned in
    preparation. Administrators need no grant.
    """
    owned: dict[int, set[Grant]] = {}
    for id, workspace in state.workspaces.items():
        owner = users.by_any_name(state, workspace.owner)
        if owner is not None and not owner.admin:
            owned.setdefault(owner.id, set()).add(Grant("WorkspaceAdmin", id))
    role_events = []
    for user_id, wanted in sorted(owned.items()):
        name = holder("user", user_id)
        workspace_ids = {grant.workspace_id for grant in grants_held_by(state, name)}
        if missing := {grant for grant in wanted if grant.workspace_id not in workspace_ids}:
            grants = tuple(sorted({*grants_held_by(state, name), *missing}))
            role_events.append(RolesSet(name, grants, "the owner of a workspace administers it"))
    return role_events
