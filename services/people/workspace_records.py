"""Workspaces and projects: those created by users, and the permanent first one of each."""

from __future__ import annotations

from collections.abc import Mapping

from det_contracts.events.gateway import AgentUser, ProjectSet, WorkspaceSet
from det_contracts.problems import failed_precondition, not_found
from services.people import users
from services.people.domain.state import People

FIRST = 1
UNCATEGORIZED = "Uncategorized"
WORKSPACE = WorkspaceSet(workspace_id=FIRST, name=UNCATEGORIZED, owner="admin", reason="")
PROJECT = ProjectSet(project_id=FIRST, workspace_id=FIRST, name=UNCATEGORIZED, owner="admin", reason="")


def workspaces(state: People) -> Mapping[int, WorkspaceSet]:
    """All workspaces by id."""
    return {FIRST: WORKSPACE} | state.workspaces


def projects(state: People) -> Mapping[int, ProjectSet]:
    """All projects by id."""
    return {FIRST: PROJECT} | state.projects


def next_id(state: People, kind: str) -> int:
    """The next id for "groups", "workspaces" or "projects". Ids are never reused."""
    known = state.highest.get(kind)
    return max(known.id if known is not None else 0, FIRST) + 1


def workspace(state: People, id: int) -> WorkspaceSet:
    """The workspace with this id. Raises `Refused` (not found)."""
    found = state.workspaces.get(id, WORKSPACE if id == FIRST else None)
    if found is None:
        raise not_found("workspace", id)
    return found


def agent_user_of(state: People, workspace_id: int, username: str) -> AgentUser | None:
    """The account that a user's tasks run as on hosts: the workspace's, or else the user's own."""
    known = state.workspaces.get(workspace_id)
    if known is not None and known.agent_user is not None:
        return known.agent_user
    return users.agent_user_of(state, username)


def project(state: People, id: int) -> ProjectSet:
    """The project with this id. Raises `Refused` (not found)."""
    found = state.projects.get(id, PROJECT if id == FIRST else None)
    if found is None:
        raise not_found("project", id)
    return found


def unarchived_project(state: People, id: int) -> ProjectSet:
    """The project with this id, if it accepts experiments. Raises `Refused`."""
    found = project(state, id)
    if found.archived or workspace(state, found.workspace_id).archived:
        raise failed_precondition(f"project {id} '{found.name}' is archived, or its workspace is")
    return found


def workspace_named(state: People, name: str) -> WorkspaceSet:
    """The workspace with this name. Raises `Refused` (not found)."""
    for one in workspaces(state).values():
        if one.name == name:
            return one
    raise not_found("workspace", name)


def project_named(state: People, workspace_name: str, project_name: str) -> ProjectSet:
    """The project with this name in the workspace with this name. Raises `Refused` (not found)."""
    id = workspace_named(state, workspace_name).workspace_id
    for one in projects(state).values():
        if (one.workspace_id, one.name) == (id, project_name):
            return one
    raise not_found("project", project_name)
