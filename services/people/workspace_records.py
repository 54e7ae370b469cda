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
    highest = state.highest.get(kind)
    return max(highest.id if highest is not None else 0, FIRST) + 1


def workspace(state: People, id: int) -> WorkspaceSet:
    """The workspace with this id. Raises `Refused` (not found)."""
    workspace_record = state.workspaces.get(id, WORKSPACE if id == FIRST else None)
    if workspace_record is None:
        raise not_found("workspace", id)
    return workspace_record


def agent_user_of(state: People, workspace_id: int, username: str) -> AgentUser | None:
    """The account that a user's tasks run as on hosts: the workspace's, or else the user's own."""
    workspace_record = state.workspaces.get(workspace_id)
    if workspace_record is not None and workspace_record.agent_user is not None:
        return workspace_record.agent_user
    return users.agent_user_of(state, username)


def project(state: People, id: int) -> ProjectSet:
    """The project with this id. Raises `Refused` (not found)."""
    project_record = state.projects.get(id, PROJECT if id == FIRST else None)
    if project_record is None:
        raise not_found("project", id)
    return project_record


def unarchived_project(state: People, id: int) -> ProjectSet:
    """The project with this id, if it accepts experiments. Raises `Refused`."""
    project_record = project(state, id)
    if project_record.archived or workspace(state, project_record.workspace_id).archived:
        raise failed_precondition(f"project {id} '{project_record.name}' is archived, or its workspace is")
    return project_record


def workspace_named(state: People, name: str) -> WorkspaceSet:
    """The workspace with this name. Raises `Refused` (not found)."""
    for workspace_record in workspaces(state).values():
        if workspace_record.name == name:
            return workspace_record
    raise not_found("workspace", name, "'det workspace list' shows which there are")


def project_named(state: People, workspace_name: str, project_name: str) -> ProjectSet:
    """The project with this name in the workspace with this name. Raises `Refused` (not found)."""
    id = workspace_named(state, workspace_name).workspace_id
    for project_record in projects(state).values():
        if (project_record.workspace_id, project_record.name) == (id, project_name):
            return project_record
    advice = f"'det project list WORKSPACE' shows which there are in workspace '{workspace_name}'"
    raise not_found("project", project_name, advice)
