"""Workspaces, their projects, and the place of an experiment (REST spec, section 7)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from typing_extensions import TypedDict

from det_contracts.events.gateway import Note, ProjectSet, WorkspaceSet
from det_contracts.expconf import masked
from det_contracts.states import TERMINAL
from services.catalogue.domain import Experiment, State
from services.gateway.determined.present.user import agent_user
from services.people import places, users

_UNSPECIFIED = {"state": "WORKSPACE_STATE_UNSPECIFIED", "errorMessage": ""}


class Place(TypedDict):
    """The project and workspace that contain something."""

    projectId: int
    projectName: str
    projectOwnerId: int
    workspaceId: int
    workspaceName: str
    parentArchived: bool


def place(state: State, project_id: int) -> Place:
    """The place of something in a project."""
    found = state.projects.get(project_id, places.PROJECT)
    above = state.workspaces.get(found.workspace_id, places.WORKSPACE)
    return {
        "projectId": found.project_id,
        "projectName": found.name,
        "projectOwnerId": _id_of(state, found.owner),
        "workspaceId": above.workspace_id,
        "workspaceName": above.name,
        "parentArchived": found.archived or above.archived,
    }


def workspace(one: WorkspaceSet, state: State, viewer: str) -> dict[str, Any]:
    """A workspace as seen by one user."""
    own = {p.project_id for p in places.projects(state).values() if p.workspace_id == one.workspace_id}
    return {
        **_UNSPECIFIED,
        "id": one.workspace_id,
        "name": one.name,
        "archived": one.archived,
        "immutable": one.workspace_id == places.FIRST,
        "userId": _id_of(state, one.owner),
        "username": one.owner,
        "numProjects": len(own),
        "numExperiments": len(_within(state, own)),
        "pinned": viewer in one.pinned_by,
        "checkpointStorageConfig": _storage(one),
        "agentUserGroup": agent_user(one.agent_user),
        "defaultComputePool": one.default_compute_pool,
        "defaultAuxPool": one.default_aux_pool,
    }


def _storage(one: WorkspaceSet) -> dict[str, Any] | None:
    """The checkpoint storage without its keys."""
    if one.checkpoint_storage is None:
        return None
    found: dict[str, Any] = masked({"checkpoint_storage": one.checkpoint_storage})["checkpoint_storage"]
    return found


def project(one: ProjectSet, state: State) -> dict[str, Any]:
    """A project."""
    above = state.workspaces.get(one.workspace_id, places.WORKSPACE)
    held = _within(state, {one.project_id})
    return {
        **_UNSPECIFIED,
        "id": one.project_id,
        "name": one.name,
        "description": one.description,
        "archived": one.archived or above.archived,
        "immutable": one.project_id == places.FIRST,
        "userId": _id_of(state, one.owner),
        "username": one.owner,
        "notes": notes(one.notes),
        "workspaceId": above.workspace_id,
        "workspaceName": above.name,
        "numExperiments": len(held),
        "numActiveExperiments": sum(experiment.state not in TERMINAL for experiment in held),
    }


def notes(found: Iterable[Note]) -> list[dict[str, str]]:
    """The notes of a project."""
    return [{"name": note.name, "contents": note.contents} for note in found]


def _within(state: State, project_ids: set[int]) -> list[Experiment]:
    return [one for one in state.experiments.values() if one.project_id in project_ids]


def _id_of(state: State, name: str) -> int:
    user = users.named(state, name)
    return user.id if user is not None else 0
