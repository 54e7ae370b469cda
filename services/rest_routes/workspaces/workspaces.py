"""Workspaces and their projects (REST spec, section 7)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from starlette.responses import Response

from det_contracts import expconf
from det_contracts.commands import RemoveProject, RemoveWorkspace, SetProject, SetWorkspace
from det_contracts.events.gateway import Note, WorkspaceSet
from det_contracts.problems import invalid
from services.kit import paging
from services.kit.authz.needs import Needs
from services.people import users, workspace_records
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.bodies import (
    NewWorkspace,
    NoteBody,
    NotesBody,
    ProjectBody,
    ProjectMove,
    WorkspaceBody,
)
from services.rest_requests.bodies_of_people import AgentUserBody, agent_user
from services.rest_routes.cluster.bindings import check_pool_exists
from services.rest_routes.present import records
from services.rest_routes.present import workspace as present
from services.rest_routes.present.answers import page_schema, record_schema
from services.submission import secrets
from services.web.query import FromQuery, MaybeFlag, Paged, Users, enum_value
from services.web.routes import Routes

router = Routes()
SORTS = {"ID": "id", "NAME": "name"}
PROJECT_SORTS = {
    **SORTS,
    # Ids count up.
    "CREATION_TIME": "id",
    "LAST_EXPERIMENT_START_TIME": "lastExperimentStartedAt",
    "DESCRIPTION": "description",
}


class PlacesQuery(Paged, Users):
    """Query parameters of a list of workspaces or projects."""

    name: str = ""
    name_case_sensitive: str = ""
    archived: MaybeFlag = None

    @property
    def sort_field(self) -> str:
        """The field by which to sort."""
        raise NotImplementedError


class WorkspacesQuery(PlacesQuery):
    """GET /workspaces"""

    sort_by: Annotated[str, enum_value("SORT_BY_", SORTS)] = "ID"
    pinned: MaybeFlag = None

    @property
    def sort_field(self) -> str:
        """The field by which to sort."""
        return SORTS[self.sort_by]


class ProjectsQuery(PlacesQuery):
    """GET /workspaces/{id}/projects"""

    sort_by: Annotated[str, enum_value("SORT_BY_", PROJECT_SORTS)] = "ID"

    @property
    def sort_field(self) -> str:
        """The field by which to sort."""
        return PROJECT_SORTS[self.sort_by]


def _workspace(call: UserCall, id: int) -> Response:
    state = call.catalogue.state
    shown = present.workspace(workspace_records.workspace(state, id), state, call.user.username)
    return call.answer({"workspace": shown})


def _project(call: UserCall, id: int) -> Response:
    state = call.catalogue.state
    return call.answer({"project": present.project(workspace_records.project(state, id), state)})


def _page(call: UserCall, query: PlacesQuery, noun: str, places: list[dict[str, Any]]) -> Response:
    name, archived, window = query.name.lower(), query.archived, query.window
    exactly = query.name_case_sensitive
    places = [
        place for place in places if name in place["name"].lower() and archived in (None, place["archived"])
    ]
    places = [place for place in places if exactly in ("", place["name"])]
    owners = users.names_of(call.catalogue.state, query.users, query.user_ids)
    places = [place for place in places if not owners or place["username"] in owners]
    by = query.sort_field
    # Pinned workspaces come first in both directions.
    places.sort(
        key=lambda place: (place.get("pinned", False) is window.descending, place[by] or "", place["id"])
    )
    page, pagination = paging.cut(places, window)
    return call.answer({noun: page, "pagination": pagination})


@router.get("/workspaces", ("view", "listed"), **page_schema("workspaces", records.Workspace))
async def workspaces(call: Authenticated, query: FromQuery[WorkspacesQuery]) -> Response:
    """All workspaces, pinned ones first."""
    state, viewer = call.catalogue.state, call.user.username
    visibility = call.visibility
    visible = visibility.filter_visible(
        lambda workspace: visibility.includes_workspace(workspace.workspace_id),
        workspace_records.workspaces(state).values(),
    )
    shown = [present.workspace(workspace, state, viewer) for workspace in visible]
    shown = [place for place in shown if query.pinned in (None, place["pinned"])]
    return _page(call, query, "workspaces", shown)


@router.post("/workspaces", ("create_workspace", "cluster"))
async def create_workspace(call: Authenticated, body: NewWorkspace) -> Response:
    """Create a workspace."""
    described = await _requested_fields(call, body, None)
    command = SetWorkspace(name=body.name or "", user=call.user.username, **described)
    return _workspace(call, await call.create(command))


@router.get("/workspaces/{id}", ("view", "workspace"), **record_schema("workspace", records.Workspace))
async def get_workspace(call: Authenticated, id: int) -> Response:
    """One workspace."""
    return _workspace(call, id)


async def _change_workspace(call: UserCall, id: int, **changes: Any) -> None:
    await call.peers.command(SetWorkspace(workspace_id=id, user=call.user.username, **changes))


@router.patch("/workspaces/{id}", ("control_workspace", "workspace"))
async def change_workspace(call: Authenticated, id: int, body: WorkspaceBody) -> Response:
    """Change a workspace's name, checkpoint storage, default pools or agent user."""
    workspace = workspace_records.workspace(call.catalogue.state, id)
    changes = await _requested_fields(call, body, workspace)
    if body.name is not None:
        changes["name"] = body.name
    if changes:
        await _change_workspace(call, id, **changes)
    return _workspace(call, id)


async def _requested_fields(
    call: UserCall, body: WorkspaceBody, workspace: WorkspaceSet | None
) -> dict[str, Any]:
    """The requested storage, agent user and pools. An empty value clears the existing one."""
    pools = {"default_compute_pool": body.default_compute_pool, "default_aux_pool": body.default_aux_pool}
    fields: dict[str, Any] = {name: pool for name, pool in pools.items() if pool is not None}
    if any(fields.values()):
        await check_pool_exists(call, *filter(None, fields.values()))
    if body.agent_user_group is not None:
        empty = body.agent_user_group == AgentUserBody()
        fields["agent_user"] = None if empty else agent_user(body.agent_user_group)
    if body.checkpoint_storage_config is not None:
        fields["checkpoint_storage"] = _storage(call, body.checkpoint_storage_config, workspace)
    return fields


def _storage(
    call: UserCall, storage: dict[str, Any], workspace: WorkspaceSet | None
) -> dict[str, Any] | None:
    """The storage for the log, with its keys sealed. Raises `Refused` (400) if it is invalid."""
    if not storage:
        return None
    try:
        full_config = expconf.merge({"checkpoint_storage": storage}, {})
    except expconf.ConfigErrors as errors:
        raise invalid(f"checkpointStorageConfig: {errors}") from None
    sealer, owner = call.backend.sealer, secrets.WORKSPACES_OWNER
    former = {"checkpoint_storage": workspace.checkpoint_storage} if workspace is not None else {}
    before = secrets.unseal_config(former, owner, sealer) if former.get("checkpoint_storage") else {}
    full_config = secrets.unmask(full_config, expconf.secrets_of(before))
    if full_config == before:
        # Sealing again would make it look changed.
        return former["checkpoint_storage"]
    sealed_storage: dict[str, Any] = secrets.seal_config(full_config, owner, sealer)["checkpoint_storage"]
    return sealed_storage


@router.delete("/workspaces/{id}", ("control_workspace", "workspace"))
async def remove_workspace(call: Authenticated, id: int) -> Response:
    """Delete a workspace that contains no experiments."""
    await call.peers.command(RemoveWorkspace(workspace_id=id, user=call.user.username))
    return call.answer({"completed": True})


def _add_workspace_switch(verb: str, needs: Needs, changes: dict[str, bool]) -> None:
    async def switch(call: Authenticated, id: int) -> Response:
        await _change_workspace(call, id, **changes)
        return call.answer({})

    switch.__doc__ = f"{verb.capitalize()} a workspace."
    path = f"/workspaces/{{id}}/{verb}"
    router.add_api_route(path, switch, needs, methods=["POST"], name=f"{verb} a workspace")


_add_workspace_switch("archive", ("control_workspace", "workspace"), {"archived": True})
_add_workspace_switch("unarchive", ("control_workspace", "workspace"), {"archived": False})
_add_workspace_switch("pin", ("view", "workspace"), {"pinned": True})
_add_workspace_switch("unpin", ("view", "workspace"), {"pinned": False})


@router.get("/workspaces/{id}/projects", ("view", "workspace"), **page_schema("projects", records.Project))
async def projects(call: Authenticated, id: int, query: FromQuery[ProjectsQuery]) -> Response:
    """The projects of a workspace."""
    state = call.catalogue.state
    workspace_records.workspace(state, id)
    own = [project for project in workspace_records.projects(state).values() if project.workspace_id == id]
    return _page(call, query, "projects", [present.project(project, state) for project in own])


@router.post("/workspaces/{id}/projects", ("create_project", "workspace"))
async def create_project(call: Authenticated, id: int, body: ProjectBody) -> Response:
    """Create a project in a workspace."""
    command = SetProject(
        workspace_id=id,
        name=body.name or "",
        description=body.description or "",
        user=call.user.username,
    )
    return _project(call, await call.create(command))


@router.get("/projects/{id}", ("view", "project"), **record_schema("project", records.Project))
async def get_project(call: Authenticated, id: int) -> Response:
    """One project."""
    return _project(call, id)


async def _change_project(call: UserCall, id: int, **changes: Any) -> Response:
    fields = {name: value for name, value in changes.items() if value is not None}
    await call.peers.command(SetProject(project_id=id, user=call.user.username, **fields))
    return _project(call, id)


@router.patch("/projects/{id}", ("edit_project", "project"))
async def change_project(call: Authenticated, id: int, body: ProjectBody) -> Response:
    """Change a project's name or description."""
    return await _change_project(call, id, name=body.name, description=body.description)


@router.delete("/projects/{id}", ("control_project", "project"))
async def remove_project(call: Authenticated, id: int) -> Response:
    """Delete a project that contains no experiments."""
    await call.peers.command(RemoveProject(project_id=id, user=call.user.username))
    return call.answer({"completed": True})


@router.post("/projects/{id}/archive", ("control_project", "project"))
async def archive_project(call: Authenticated, id: int) -> Response:
    """Archive a project. It accepts no new experiments."""
    await _change_project(call, id, archived=True)
    return call.answer({})


@router.post("/projects/{id}/unarchive", ("control_project", "project"))
async def unarchive_project(call: Authenticated, id: int) -> Response:
    """Unarchive a project."""
    await _change_project(call, id, archived=False)
    return call.answer({})


@router.post("/projects/{id}/move", ("control_project", "project"))
async def move_project(call: Authenticated, id: int, body: ProjectMove) -> Response:
    """Move a project to another workspace."""
    await _change_project(call, id, workspace_id=body.destination_workspace_id)
    return call.answer({})


@router.post("/projects/{id}/notes", ("edit_project", "project"))
async def add_note(call: Authenticated, id: int, body: NoteBody) -> Response:
    """Add a note to a project."""
    former_notes = workspace_records.project(call.catalogue.state, id).notes
    notes = (*former_notes, Note(body.name, body.contents))
    await call.create(SetProject(project_id=id, notes=notes, user=call.user.username))
    return _notes(call, id)


@router.put("/projects/{id}/notes", ("edit_project", "project"))
async def put_notes(call: Authenticated, id: int, body: NotesBody) -> Response:
    """Replace all notes of a project."""
    await _change_project(call, id, notes=tuple(Note(note.name, note.contents) for note in body.notes))
    return _notes(call, id)


def _notes(call: UserCall, id: int) -> Response:
    note_records = msgspec.to_builtins(workspace_records.project(call.catalogue.state, id).notes)
    return call.answer({"notes": note_records})
