"""`det rbac`: roles and their assignments (client spec, section 6)."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from determined.cli import output
from determined.cli.failure import Failure
from determined.cli.grammar import Noun, Run, Verb, arg
from determined.cli.paging import paging_args, post_pages
from determined.cli.user_group import group_id, user_id
from determined.transport.rest import Session

Object = dict[str, Any]
PATH = "/api/v1/roles"
_JSON = arg("--json", action="store_true", help="print as JSON")
_ROLE = arg("role_name", help="name of the role")
_HOLDER = (
    arg("-w", "--workspace-name", metavar="NAME", help="in this workspace; default: in the whole cluster"),
    arg("-u", "--username-to-assign", metavar="NAME", help="the user"),
    arg("-g", "--group-name-to-assign", metavar="NAME", help="the group"),
)


def list_roles(session: Session, args: argparse.Namespace) -> None:
    """List all roles with their permissions."""
    path = f"{PATH}/search"
    body = {}
    if args.exclude_global_roles:
        # A role that can be assigned for one workspace can be assigned for any.
        path, body = f"{path}/by-assignability", {"workspaceId": 1}
    roles = post_pages(session, path, "roles", args, body)
    if args.json:
        output.print_json({"roles": roles})
        return
    for role in roles:
        _show_role(role)
        print()


def _show_role(role: Object) -> None:
    print(f"role '{role['name']}' with ID {role['roleId']} permits")
    _show_permissions(role["permissions"])


def _show_permissions(permissions: Iterable[Object]) -> None:
    rows = [
        [permission["id"], permission["name"], permission["scopeTypeMask"]["workspace"]]
        for permission in permissions
    ]
    output.table(["ID", "Name", "For Workspaces"], rows)


def describe_role(session: Session, args: argparse.Namespace) -> None:
    """Show a role and its holders."""
    id = _role(session, args.role_name)["roleId"]
    (role,) = session.post(f"{PATH}/search/by-ids", {"roleIds": [id]})["roles"]
    if args.json:
        output.print_json(role)
        return
    _show_role(role["role"])
    for kind in ("group", "user"):
        print()
        _show_holders(session, kind, role[f"{kind}RoleAssignments"])


def _show_holders(session: Session, kind: str, held: list[Object]) -> None:
    if not held:
        print(f"role is not assigned to any {kind}s")
        return
    rows = [
        [_name(session, kind, assignment[f"{kind}Id"]), *_scope(session, assignment)] for assignment in held
    ]
    output.table([kind.capitalize(), "Scope Cluster", "Scope Workspace"], rows)


def list_users_roles(session: Session, args: argparse.Namespace) -> None:
    """List the roles of a user, direct and through groups."""
    roles = session.get(f"{PATH}/search/by-user/{user_id(session, args.username)}")["roles"]
    if args.json:
        output.print_json({"roles": roles})
        return
    rows = []
    for role in roles:
        for kind in ("user", "group"):
            for assignment in role[f"{kind}RoleAssignments"]:
                through = _name(session, kind, assignment["groupId"]) if kind == "group" else None
                rows.append(
                    [role["role"]["name"], role["role"]["roleId"], through, *_scope(session, assignment)]
                )
    if not rows:
        print("user has no role assignments")
        return
    output.table(["Role", "Role ID", "Through Group", "Scope Cluster", "Scope Workspace"], rows)


def list_groups_roles(session: Session, args: argparse.Namespace) -> None:
    """List the roles of a group."""
    answer = session.get(f"{PATH}/search/by-group/{group_id(session, args.group_name)}")
    if args.json:
        output.print_json(answer)
        return
    names = {role["roleId"]: role["name"] for role in answer["roles"]}
    rows = []
    for assignment in answer["assignments"]:
        scopes = [None] if assignment["scopeCluster"] else []
        for id in [*scopes, *assignment["scopeWorkspaceIds"]]:
            workspace = _workspace_name(session, id) if id else None
            rows.append([names[assignment["roleId"]], assignment["roleId"], id is None, workspace])
    if not rows:
        print("group has no role assignments")
        return
    output.table(["Role", "Role ID", "Scope Cluster", "Scope Workspace"], rows)


def my_permissions(session: Session, args: argparse.Namespace) -> None:
    """List the permissions of the current user, and where they apply."""
    summary = session.get("/api/v1/permissions/summary")
    if args.json:
        output.print_json(summary)
        return
    roles = {role["roleId"]: role for role in summary["roles"]}
    if not summary["assignments"]:
        print("no permissions assigned: an administrator gives them with 'det rbac assign-role'")
    for assignment in summary["assignments"]:
        for id in [*([None] if assignment["scopeCluster"] else []), *assignment["scopeWorkspaceIds"]]:
            where = f"in workspace '{_workspace_name(session, id)}'" if id else "in the whole cluster"
            print(f"role '{roles[assignment['roleId']]['name']}' {where} permits")
            _show_permissions(roles[assignment["roleId"]]["permissions"])
            print()


def _assign(verb: str, done: tuple[str, str]) -> Run:
    def run(session: Session, args: argparse.Namespace) -> None:
        user, group = args.username_to_assign, args.group_name_to_assign
        if (user is None) is (group is None):
            raise Failure("must provide exactly one of --username-to-assign or --group-name-to-assign")
        role = _role(session, args.role_name)
        assignment, where = _assignment(session, role, args.workspace_name)
        if user is not None:
            kind, name, id = "user", user, user_id(session, user)
        else:
            kind, name, id = "group", group, group_id(session, group)
        body = {f"{kind}RoleAssignments": [{f"{kind}Id": id, "roleAssignment": assignment}]}
        session.post(f"{PATH}/{verb}-assignments", body)
        print(f"{done[0]} role '{role['name']}' with ID {role['roleId']} {done[1]} "
              f"{kind} '{name}' with ID {id} {where}")  # fmt: skip

    return run


def _assignment(session: Session, role: Object, workspace: str | None) -> tuple[Object, str]:
    if workspace is None:
        return {"role": {"roleId": role["roleId"]}, "scopeCluster": True}, "globally"
    from determined.experimental import _model

    id = _model.workspace_id(session, workspace)
    return {"role": {"roleId": role["roleId"]}, "scopeWorkspaceId": id}, f"to workspace {workspace}"


def _role(session: Session, name: str) -> Object:
    for role in session.post(f"{PATH}/search", {"limit": 0})["roles"]:
        if role["name"] == name:
            record: Object = role
            return record
    raise Failure(f"could not find role name {name}")


def _scope(session: Session, held: Object) -> list[Any]:
    assignment = held["roleAssignment"]
    id = assignment["scopeWorkspaceId"]
    return [assignment["scopeCluster"], _workspace_name(session, id) if id else None]


def _workspace_name(session: Session, id: int) -> str:
    return str(session.get(f"/api/v1/workspaces/{id}")["workspace"]["name"])


def _name(session: Session, kind: str, id: int) -> str:
    if kind == "group":
        return str(session.get(f"/api/v1/groups/{id}")["group"]["name"])
    return str(session.get(f"/api/v1/users/{id}")["user"]["username"])


NOUN = Noun(
    "rbac",
    "manage roles",
    (
        Verb("my-permissions", "list permissions the current user has", my_permissions, (_JSON,)),
        Verb(
            "list-roles",
            "list roles",
            list_roles,
            (
                arg("--exclude-global-roles", action="store_true", help="only those for single workspaces"),
                _JSON,
                *paging_args(),
            ),
        ),
        Verb("describe-role", "describe a role", describe_role, (_ROLE, _JSON)),
        Verb(
            "list-users-roles",
            "list a user's roles",
            list_users_roles,
            (arg("username", help="name of the user"), _JSON),
        ),
        Verb(
            "list-groups-roles",
            "list a group's roles",
            list_groups_roles,
            (arg("group_name", help="name of the group"), _JSON),
        ),
        Verb(
            "assign-role",
            "assign a role to a user or group",
            _assign("add", ("assigned", "to")),
            (_ROLE, *_HOLDER),
        ),
        Verb(
            "unassign-role",
            "unassign a role from a user or group",
            _assign("remove", ("removed", "from")),
            (_ROLE, *_HOLDER),
        ),
    ),
)
