"""Commands about workspaces, their projects, and the filing of experiments (REST spec, section 7)."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts.commands import (
    MoveExperiment,
    RemoveProject,
    RemoveWorkspace,
    SetProject,
    SetWorkspace,
    given_fields,
)
from det_contracts.events.gateway import (
    ExperimentMoved,
    ProjectRemoved,
    ProjectSet,
    WorkspaceRemoved,
    WorkspaceSet,
)
from det_contracts.problems import Problem, Refused, failed_precondition, invalid, not_found
from services.kit.authz.roles import is_rbac
from services.kit.names import check_name
from services.kit.pool_bindings import check_pool
from services.kit.rules import Call, Result
from services.kit.sorted_keys import SortedKeys
from services.people import workspace_records
from services.people.commands.pools import unbind_workspace
from services.people.commands.quotas import remove_quota
from services.people.commands.roles import creator_roles, remove_workspace_roles
from services.people.commands.users import check_agent_user
from services.people.domain.state import People

replace = msgspec.structs.replace
MAX_NAME_CHARACTERS = 80
MAX_WORKSPACES_EACH, MAX_PROJECTS_EACH = 1000, 10_000
"""Of one user. All are in memory, and in the lists that everybody opens."""
WORKSPACE_FIELDS = ("checkpoint_storage", "agent_user", "default_compute_pool", "default_aux_pool")
"""The fields of a workspace that only describe it, besides its name."""


def set_workspace(state: People, command: SetWorkspace, call: Call) -> Result:
    """Create a workspace, or change the given fields of one. Has no effect if nothing changes."""
    if command.workspace_id is None:
        _check_number(state.workspaces_of, command.user, MAX_WORKSPACES_EACH, "workspaces")
        id = workspace_records.next_id(state, "workspaces")
        workspace = WorkspaceSet(
            workspace_id=id, name="", owner=command.user, reason=f"made by {command.user}"
        )
    else:
        id = command.workspace_id
        workspace = replace(workspace_records.workspace(state, id), reason=f"changed by {command.user}")
    wanted = workspace
    if command.name is not msgspec.UNSET and command.name != workspace.name:
        _refuse_permanent(id, "workspace")
        if workspace.archived and command.archived is not False:
            raise _archived_error(f"workspace {id} '{workspace.name}'")
        holder = state.workspace_names.get(command.name.lower())
        # The permanent one is not in the state, and so not in its index of names.
        if command.name.lower() == workspace_records.UNCATEGORIZED.lower():
            holder = workspace_records.FIRST
        _check_name(command.name, None if holder == id else holder, "workspace")
        wanted = replace(wanted, name=command.name)
    if command.archived is not msgspec.UNSET and command.archived != workspace.archived:
        _refuse_permanent(id, "workspace")
        wanted = replace(wanted, archived=command.archived)
    described = given_fields(command, *WORKSPACE_FIELDS)
    if any(getattr(workspace, name) != value for name, value in described.items()):
        _refuse_permanent(id, "workspace")
        if workspace.archived and wanted.archived:
            raise _archived_error(f"workspace {id} '{workspace.name}'")
        check_agent_user(described.get("agent_user"))
        _check_pools(state, replace(wanted, **described))
        wanted = replace(wanted, **described)
    # Not refused for an archived or permanent workspace: a pin belongs to the user who sets it.
    if command.pinned is not msgspec.UNSET:
        others = tuple(user for user in workspace.pinned_by if user != command.user)
        wanted = replace(wanted, pinned_by=(*others, command.user) if command.pinned else others)
    if not wanted.name:
        raise invalid("a workspace needs a name")
    role_events = (
        creator_roles(state, command.user, id) if command.workspace_id is None and is_rbac(state) else []
    )
    return Result([wanted, *role_events] if wanted != workspace else [], id)


def _check_pools(state: People, wanted: WorkspaceSet) -> None:
    """Raise `Refused` for a default pool that the workspace may not use."""
    for pool in filter(None, (wanted.default_compute_pool, wanted.default_aux_pool)):
        check_pool(state, pool, wanted.workspace_id, wanted.name)


def remove_workspace(state: People, command: RemoveWorkspace, call: Call) -> Result:
    """Remove a workspace and its projects, which must not contain experiments."""
    workspace_records.workspace(state, command.workspace_id)
    _refuse_permanent(command.workspace_id, "workspace")
    project_ids = list(state.projects_in.ids(command.workspace_id))
    _check_empty(state, project_ids, f"workspace {command.workspace_id}")
    reason = f"removed by {command.user}"
    model = state.models_in.first(command.workspace_id)
    if model:
        raise failed_precondition(
            f"workspace {command.workspace_id} holds models, such as {model[-1]}: move or delete them first"
        )
    template = state.templates_in.first(command.workspace_id)
    if template:
        name = state.templates[template[-1]].name
        raise failed_precondition(
            f"workspace {command.workspace_id} holds templates, such as '{name}': move or delete them first"
        )
    removals: list[Any] = [ProjectRemoved(id, reason) for id in project_ids]
    removals += remove_workspace_roles(state, command.workspace_id, reason)
    removals += remove_quota(state, f"workspace-{command.workspace_id}", reason)
    removals += unbind_workspace(state, command.workspace_id, reason)
    return Result([*removals, WorkspaceRemoved(command.workspace_id, reason)])


def set_project(state: People, command: SetProject, call: Call) -> Result:
    """Create a project, or change the given fields of one. Has no effect if nothing changes."""
    if command.project_id is None:
        _check_number(state.projects_of, command.user, MAX_PROJECTS_EACH, "projects")
        id = workspace_records.next_id(state, "projects")
        reason = f"made by {command.user}"
        project = ProjectSet(project_id=id, workspace_id=0, name="", owner=command.user, reason=reason)
    else:
        id = command.project_id
        project = replace(workspace_records.project(state, id), reason=f"changed by {command.user}")
    changes = given_fields(command, "workspace_id", "name", "description", "archived", "notes")
    wanted = replace(project, **changes)
    if wanted == project:
        return Result(value=id)
    if {"workspace_id", "name", "description", "archived"} & changes.keys():
        _refuse_permanent(id, "project")
    if command.project_id is not None:
        _refuse_archived(state, project, wanted)
    workspace = workspace_records.workspace(state, wanted.workspace_id)
    if (wanted.name, wanted.workspace_id) != (project.name, project.workspace_id):
        if workspace.archived:
            raise failed_precondition(f"workspace {workspace.workspace_id} is archived")
        holder = state.project_names.get((wanted.workspace_id, wanted.name.lower()))
        if (
            wanted.workspace_id == workspace_records.PROJECT.workspace_id
            and wanted.name.lower() == workspace_records.UNCATEGORIZED.lower()
        ):
            holder = workspace_records.FIRST
        _check_name(wanted.name, None if holder == id else holder, "project")
    return Result([wanted], id)


def remove_project(state: People, command: RemoveProject, call: Call) -> Result:
    """Remove a project that contains no experiments."""
    workspace_records.project(state, command.project_id)
    _refuse_permanent(command.project_id, "project")
    _check_empty(state, [command.project_id], f"project {command.project_id}")
    return Result([ProjectRemoved(command.project_id, f"removed by {command.user}")])


def move_experiment(state: People, command: MoveExperiment, call: Call) -> Result:
    """Move an experiment to another project."""
    id, project_id = command.experiment_id, state.project_of.get(command.experiment_id)
    if project_id is None:
        raise not_found("experiment", id)
    workspace_records.unarchived_project(state, command.project_id)
    if project_id == command.project_id:
        return Result()
    # An experiment that was made while its project was removed is in none (docs/decisions/0095).
    if project_id == workspace_records.FIRST or project_id in state.projects:
        workspace_records.unarchived_project(state, project_id)
    return Result([ExperimentMoved(id, command.project_id, f"moved by {command.user}")])


def _refuse_archived(state: People, project: ProjectSet, wanted: ProjectSet) -> None:
    """Raise `Refused` for a change to something archived, unless it unarchives it."""
    space = workspace_records.workspace(state, project.workspace_id)
    if space.archived:
        raise _archived_error(f"workspace {space.workspace_id} '{space.name}'")
    if project.archived and wanted.archived:
        raise _archived_error(f"project {project.project_id} '{project.name}'")


def _archived_error(what: str) -> Refused:
    return failed_precondition(f"{what} is archived and cannot be changed: unarchive it first")


def _check_number(by_owner: SortedKeys, owner: str, most: int, what: str) -> None:
    """Raise `Refused` if a user has so many already."""
    if by_owner.count(owner) >= most:
        raise failed_precondition(f"'{owner}' has {most} {what} already, the maximum: delete some of them")


def _refuse_permanent(id: int, kind: str) -> None:
    if id == workspace_records.FIRST:
        raise failed_precondition(
            f"{kind} {id} '{workspace_records.UNCATEGORIZED}' is permanent and cannot be changed"
        )


def _check_name(name: str, holder: int | None, kind: str) -> None:
    check_name(f"a {kind}", name, MAX_NAME_CHARACTERS)
    if holder is not None:
        raise Refused(Problem("already_exists", f"a {kind} named '{name}' exists already"))


def _check_empty(state: People, project_ids: list[int], what: str) -> None:
    experiments = sum(state.experiments_in.count(id) for id in project_ids)
    if experiments:
        first = next(key[-1] for id in project_ids if (key := state.experiments_in.first(id)))
        raise failed_precondition(
            f"{what} holds experiments ({experiments} in all, such as {first}): move or delete them first"
        )
