"""Workspaces, their projects, and the place of an experiment (REST spec, section 7)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from typing_extensions import TypedDict

from det_contracts.events.gateway import Note, ProjectSet, WorkspaceSet
from det_contracts.expconf import mask_secrets
from det_contracts.states import TERMINAL
from services.catalogue.api_values import format_time
from services.catalogue.domain import Experiment, State
from services.people import users, workspace_records
from services.rest_routes.present.user import agent_user

_UNSPECIFIED = {"state": "WORKSPACE_STATE_UNSPECIFIED", "errorMessage": ""}


class ProjectLocation(TypedDict):
    """The project and workspace that contain something."""

    projectId: int
    projectName: str
    projectOwnerId: int
    workspaceId: int
    workspaceName: str
    parentArchived: bool


def project_location(state: State, project_id: int) -> ProjectLocation:
    """The place of something in a project."""
    record = state.projects.get(project_id, workspace_records.PROJECT)
    parent_workspace = state.workspaces.get(record.workspace_id, workspace_records.WORKSPACE)
    return {
        "projectId": record.project_id,
        "projectName": record.name,
        "projectOwnerId": _user_id(state, record.owner),
        "workspaceId": parent_workspace.workspace_id,
        "workspaceName": parent_workspace.name,
        "parentArchived": record.archived or parent_workspace.archived,
    }


def workspace(record: WorkspaceSet, state: State, viewer: str) -> dict[str, Any]:
    """A workspace as seen by one user."""
    own = {
        p.project_id
        for p in workspace_records.projects(state).values()
        if p.workspace_id == record.workspace_id
    }
    return {
        **_UNSPECIFIED,
        "id": record.workspace_id,
        "name": record.name,
        "archived": record.archived,
        "immutable": record.workspace_id == workspace_records.FIRST,
        "userId": _user_id(state, record.owner),
        "username": record.owner,
        "numProjects": len(own),
        "numExperiments": len(_experiments_in(state, own)),
        "pinned": viewer in record.pinned_by,
        "checkpointStorageConfig": _storage(record),
        "agentUserGroup": agent_user(record.agent_user),
        "defaultComputePool": record.default_compute_pool,
        "defaultAuxPool": record.default_aux_pool,
    }


def _storage(record: WorkspaceSet) -> dict[str, Any] | None:
    """The checkpoint storage without its keys."""
    if record.checkpoint_storage is None:
        return None
    masked_storage: dict[str, Any] = mask_secrets({"checkpoint_storage": record.checkpoint_storage})[
        "checkpoint_storage"
    ]
    return masked_storage


def project(record: ProjectSet, state: State) -> dict[str, Any]:
    """A project."""
    parent_workspace = state.workspaces.get(record.workspace_id, workspace_records.WORKSPACE)
    held = _experiments_in(state, {record.project_id})
    started = [experiment.created_at for experiment in held]
    return {
        **_UNSPECIFIED,
        "id": record.project_id,
        "name": record.name,
        "description": record.description,
        "archived": record.archived or parent_workspace.archived,
        "immutable": record.project_id == workspace_records.FIRST,
        "userId": _user_id(state, record.owner),
        "username": record.owner,
        "notes": notes(record.notes),
        "workspaceId": parent_workspace.workspace_id,
        "workspaceName": parent_workspace.name,
        "numExperiments": len(held),
        "numActiveExperiments": sum(experiment.state not in TERMINAL for experiment in held),
        "lastExperimentStartedAt": format_time(max(started)) if started else None,
    }


def notes(project_notes: Iterable[Note]) -> list[dict[str, str]]:
    """The notes of a project."""
    return [{"name": note.name, "contents": note.contents} for note in project_notes]


def _experiments_in(state: State, project_ids: set[int]) -> list[Experiment]:
    return [experiment for experiment in state.experiments.values() if experiment.project_id in project_ids]


def _user_id(state: State, name: str) -> int:
    user = users.by_any_name(state, name)
    return user.id if user is not None else 0
