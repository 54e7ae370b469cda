"""Roles and their assignments (REST spec, section 2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from det_contracts.events.gateway import Grant
from services.catalogue.domain import State
from services.kit.authz.permissions import API_TYPES, CLUSTER_ROLES, OF_ROLE, PERMISSIONS, ROLE_IDS, Role
from services.kit.authz.roles import grants_held_by, holder
from services.people import groups, users
from services.people.groups import ADMINISTRATOR

ROLES_BY_ID = {id: role for role, id in ROLE_IDS.items()}
_CLUSTER_PERMISSIONS = frozenset(PERMISSIONS) - OF_ROLE["WorkspaceAdmin"]


def role(name: Role) -> dict[str, Any]:
    """A role with its permissions."""
    mask = {"cluster": True, "workspace": name not in CLUSTER_ROLES}
    permissions = [
        {
            "id": f"PERMISSION_TYPE_{kind}",
            "name": kind.lower().replace("_", " "),
            "scopeTypeMask": {"cluster": True, "workspace": permission not in _CLUSTER_PERMISSIONS},
        }
        for permission, kinds in API_TYPES.items()
        if permission in OF_ROLE[name]
        for kind in kinds.split()
    ]
    return {"roleId": ROLE_IDS[name], "name": name, "permissions": permissions, "scopeTypeMask": mask}


def grants_of(state: State, name: str) -> tuple[Grant, ...]:
    """The grants of a holder, including the implied grant of an administrator."""
    kind, id = groups.parse_holder(name)
    administers = kind == "user" and users.by_id(state, id).admin
    return (*((ADMINISTRATOR,) if administers else ()), *grants_held_by(state, name))


def roles_of(grants: Iterable[Grant]) -> list[dict[str, Any]]:
    """The distinct roles among some grants."""
    names = {grant.role for grant in grants}
    return [role(name) for name in ROLE_IDS if name in names]


def scopes(grants: Iterable[Grant]) -> list[dict[str, Any]]:
    """The workspaces in which each role is held."""
    held_grants = list(grants)
    return [
        {
            "roleId": ROLE_IDS[name],
            "scopeWorkspaceIds": sorted({g.workspace_id for g in held_grants if g.role == name} - {0}),
            "scopeCluster": Grant(name) in held_grants,
        }
        for name in ROLE_IDS
        if any(g.role == name for g in held_grants)
    ]


def role_with_assignments(state: State, name: Role, grants: Iterable[tuple[str, Grant]]) -> dict[str, Any]:
    """A role with its assignments among `grants`, pairs of a holder and a grant."""
    assignments: dict[str, list[Any]] = {"groupRoleAssignments": [], "userRoleAssignments": []}
    for who, grant in grants:
        if grant.role != name:
            continue
        kind, id = groups.parse_holder(who)
        assignments[f"{kind}RoleAssignments"].append({f"{kind}Id": id, "roleAssignment": assignment(grant)})
    return {"role": role(name), **assignments}


def assignment(grant: Grant) -> dict[str, Any]:
    """A role assignment and its scope."""
    role_name = next(name for name in ROLE_IDS if name == grant.role)
    return {
        "role": role(role_name),
        "scopeWorkspaceId": grant.workspace_id or None,
        "scopeCluster": not grant.workspace_id,
    }


def user_grants(state: State, user_id: int, group_ids: Iterable[int]) -> list[tuple[str, Grant]]:
    """All grants of a user, each with the user or group that holds it."""
    names = [holder("user", user_id), *(holder("group", id) for id in group_ids)]
    return [(name, grant) for name in names for grant in grants_of(state, name)]
