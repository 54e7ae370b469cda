"""The model registry (REST spec, section 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from starlette.responses import Response

from det_contracts import ids
from det_contracts.commands import RemoveModel, RemoveVersion, SetModel, SetVersion
from det_contracts.problems import invalid, not_found
from services.catalogue.domain import Checkpoint, Model, ModelVersion, State
from services.kit import paging
from services.kit.patterns import ANY_TEXT, name_matcher
from services.people import users, workspace_records
from services.rest_requests.api_call import PART, Authenticated, UserCall
from services.rest_requests.bodies import ModelBody, ModelMove, NewModel, VersionBody
from services.rest_routes.checkpoints import checkpoints
from services.rest_routes.present import model as present
from services.rest_routes.present import records
from services.rest_routes.present.answers import page_schema, record_schema
from services.web.query import NOTHING, FromQuery, Integer, Integers, MaybeFlag, Paged, Users, enum_value
from services.web.routes import Routes

router = Routes()
SORTS = {
    "ID": "id",
    "NAME": "name",
    "DESCRIPTION": "description",
    "CREATION_TIME": "creationTime",
    "LAST_UPDATED_TIME": "lastUpdatedTime",
    "NUM_VERSIONS": "numVersions",
    "WORKSPACE": "workspaceId",
}


def find(state: State, name_or_id: str) -> Model:
    """The model of that name or id. Raises `Refused` (not found)."""
    number = ids.parse_number(name_or_id)
    if number is not None and number in state.models:
        return state.models[number]
    for model in state.models.values():
        if model.name == name_or_id:
            return model
    raise not_found("model", name_or_id)


def find_version(state: State, name_or_id: str, number: int) -> ModelVersion:
    """A version of a model. Raises `Refused` (not found)."""
    model = find(state, name_or_id)
    key = state.versions_of.first(model.id, number)
    if key is not None:
        return state.versions[key[-1]]
    raise not_found(f"version of model '{model.name}'", number)


def _shown(call: UserCall, id: int) -> Response:
    state = call.catalogue.state
    if id not in state.models:
        raise not_found("model", id)
    return call.answer({"model": present.model(state.models[id], state)})


class ModelsQuery(Paged, Users):
    """GET /models"""

    sort_by: Annotated[str, enum_value("SORT_BY_", SORTS)] = "ID"
    name: str = ""
    """The whole name. `%` in it stands for any text, and then case does not count."""
    description: str = ""
    """A part of the description."""
    labels: list[str] = NOTHING
    archived: MaybeFlag = None
    id: Integer = 0
    workspace_id: Integer = 0
    workspace_ids: Integers = NOTHING
    workspace_names: list[str] = NOTHING


@router.get("/models", ("view", "listed"), **page_schema("models", records.Model))
async def models(call: Authenticated, query: FromQuery[ModelsQuery]) -> Response:
    """A page of models."""
    checks = _checks(call, query)
    entries = [present.model(model, call.catalogue.state) for model in _visible_models(call)]
    entries = [entry for entry in entries if all(check(entry) for check in checks)]
    entries.sort(key=lambda entry: (entry[SORTS[query.sort_by]], entry["id"]))
    page, pagination = paging.cut(entries, query.window)
    return call.answer({"models": page, "pagination": pagination})


def _visible_models(call: UserCall) -> list[Model]:
    visibility = call.visibility
    return visibility.filter_visible(
        lambda model: visibility.includes_workspace(model.workspace_id), call.catalogue.state.models.values()
    )


def _checks(call: UserCall, query: ModelsQuery) -> list[Any]:
    state = call.catalogue.state
    description, has_name = query.description.lower(), _name_check(query.name)
    labels, archived, id = set(query.labels), query.archived, query.id
    wanted_users = users.names_of(state, query.users, query.user_ids)
    named = set(query.workspace_names)
    spaces = set(query.workspace_ids) | {query.workspace_id} - {0}
    spaces |= {w.workspace_id for w in workspace_records.workspaces(state).values() if w.name in named}
    limited = bool(spaces or named)
    return [
        lambda entry: has_name(entry["name"]) and description in entry["description"].lower(),
        lambda entry: labels <= set(entry["labels"]) and archived in (None, entry["archived"]),
        lambda entry: id in (0, entry["id"]) and (not limited or entry["workspaceId"] in spaces),
        lambda entry: not wanted_users or entry["username"] in wanted_users,
    ]


def _name_check(requested_name: str) -> Callable[[str], bool]:
    """Return whether a model's name is the one that was asked for (decision 67).

    Clients of 0.25 look up a model by its whole name here, and give up where two are found.
    """
    if ANY_TEXT in requested_name:
        return name_matcher(requested_name)
    return lambda name: requested_name in ("", name)


class LabelsQuery(Paged):
    """GET /model/labels"""

    workspace_id: Integer = 0


@router.get("/model/labels", ("view", "listed"))
async def labels(call: Authenticated, query: FromQuery[LabelsQuery]) -> Response:
    """All labels of models, most used first."""
    found_models = [model for model in _visible_models(call) if query.workspace_id in (0, model.workspace_id)]
    used = Counter(label for model in found_models for label in model.labels)
    sorted_labels = [label for label, _ in sorted(used.items(), key=lambda item: (-item[1], item[0]))]
    page, pagination = paging.cut(sorted_labels, query.window)
    return call.answer({"labels": page, "pagination": pagination})


@router.get("/model/checkpoints", ("view", "listed"))
async def registered(call: Authenticated) -> Response:
    """Checkpoints that are versions of models (our addition)."""
    state = call.catalogue.state
    held = (state.versions[id] for model in _visible_models(call) for id in state.versions_of.ids(model.id))
    checkpoint_uuids = {version.checkpoint for version in held}
    return call.answer({"checkpoints": sorted(checkpoint_uuids)})


@router.post("/models", ("create", "body"))
async def create(call: Authenticated, body: NewModel) -> Response:
    """Create a model."""
    state = call.catalogue.state
    space = workspace_records.FIRST
    if body.workspace_id:
        space = workspace_records.workspace(state, body.workspace_id).workspace_id
    elif body.workspace_name:
        space = workspace_records.workspace_named(state, body.workspace_name).workspace_id
    command = SetModel(user=call.user.username, workspace_id=space, **{"name": "", **body.changes()})
    return _shown(call, await call.create(command))


@router.get("/models/{name}", ("view", "model"), **record_schema("model", records.Model))
async def get(call: Authenticated, name: str) -> Response:
    """One model, by name or id."""
    return _shown(call, find(call.catalogue.state, name).id)


async def _change(call: UserCall, name_or_id: str, /, **changes: Any) -> Response:
    id = find(call.catalogue.state, name_or_id).id
    await call.peers.command(SetModel(model_id=id, user=call.user.username, **changes))
    return _shown(call, id)


@router.patch("/models/{name}", ("edit", "model"))
async def change(call: Authenticated, name: str, body: ModelBody) -> Response:
    """Change the given fields of a model."""
    changes = body.changes()
    if body.workspace_name:
        changes["workspace_id"] = workspace_records.workspace_named(
            call.catalogue.state, body.workspace_name
        ).workspace_id
    return await _change(call, name, **changes)


@router.post("/models/{name}/archive", ("control", "model"))
async def archive(call: Authenticated, name: str) -> Response:
    """Archive a model, which makes it read-only."""
    await _change(call, name, archived=True)
    return call.answer({})


@router.post("/models/{name}/unarchive", ("control", "model"))
async def unarchive(call: Authenticated, name: str) -> Response:
    """Unarchive a model."""
    await _change(call, name, archived=False)
    return call.answer({})


@router.post("/models/{name}/move", ("control", "model"))
async def move(call: Authenticated, name: str, body: ModelMove) -> Response:
    """Move a model to another workspace."""
    space = workspace_records.workspace(call.catalogue.state, body.destination_workspace_id)
    await _change(call, name, workspace_id=space.workspace_id)
    return call.answer({})


@router.delete("/models/{name}", ("delete", "model"))
async def remove(call: Authenticated, name: str) -> Response:
    """Delete a model and its versions. Their checkpoints become subject to the retention rules."""
    id = find(call.catalogue.state, name).id
    await call.peers.command(RemoveModel(model_id=id, user=call.user.username))
    return call.answer({})


async def _shown_version(call: UserCall, id: int) -> Response:
    state = call.catalogue.state
    version = state.versions.get(id)
    if version is None:
        raise not_found("version with the id", id)
    await call.catalogue.evicted.load([("checkpoints", version.checkpoint)])
    checkpoint = state.checkpoints.get(version.checkpoint)
    # A model may be visible where the experiment of its checkpoint is not.
    if checkpoint is not None and not call.visibility.includes_experiment(checkpoint.experiment_id):
        checkpoint = None
    shown_checkpoints = await checkpoints.show(call, checkpoint) if checkpoint is not None else {}
    return call.answer({"modelVersion": present.version(version, state, shown_checkpoints)})


class VersionsQuery(Paged):
    """GET /models/{name}/versions"""

    # Numbers count up, so both orders are the same.
    sort_by: Annotated[str, enum_value("SORT_BY_", ("VERSION", "CREATION_TIME"))] = "VERSION"


@router.get("/models/{name}/versions", ("view", "model"))
async def versions(call: Authenticated, name: str, query: FromQuery[VersionsQuery]) -> Response:
    """A page of the versions of a model."""
    state = call.catalogue.state
    model = find(state, name)
    model_versions = [state.versions[id] for id in state.versions_of.ids(model.id)]
    page, pagination = paging.cut(model_versions, query.window)
    # Places alone: with their checkpoints, a model of ten thousands of versions would fill the memory.
    places = [
        (checkpoint.trial_id, checkpoint.steps)
        for start in range(0, len(page), PART)
        for checkpoint in await _visible_checkpoints(call, page[start : start + PART])
    ]
    validations = await checkpoints.validations_at(call, places)

    async def show(some: Sequence[ModelVersion]) -> list[dict[str, Any]]:
        held = await _visible_checkpoints(call, some)
        entries = {entry["uuid"]: entry for entry in await checkpoints.show_all(call, held, validations)}
        # The model may have been deleted meanwhile, and its versions with it.
        return [
            present.version(version, state, entries.get(version.checkpoint, {}))
            for version in some
            if version.id in state.versions
        ]

    shown_model = present.model(model, state)
    return await call.answer_list("modelVersions", page, show, model=shown_model, pagination=pagination)


async def _visible_checkpoints(call: UserCall, versions: Sequence[ModelVersion]) -> list[Checkpoint]:
    """Without those that were deleted, or belong to an experiment that the user may not see."""
    await call.catalogue.evicted.load(("checkpoints", version.checkpoint) for version in versions)
    records = call.catalogue.state.checkpoints
    held = [records[version.checkpoint] for version in versions if version.checkpoint in records]
    visibility = call.visibility
    return visibility.filter_visible(
        lambda checkpoint: visibility.includes_experiment(checkpoint.experiment_id), held
    )


@router.post("/models/{name}/versions", ("edit", "model"))
async def register(call: Authenticated, name: str, body: VersionBody) -> Response:
    """Register a checkpoint as the next version."""
    id = find(call.catalogue.state, name).id
    if not body.checkpoint_uuid:
        raise invalid("checkpointUuid: the checkpoint to register is missing")
    command = SetVersion(
        model_id=id, checkpoint=body.checkpoint_uuid, user=call.user.username, **body.changes()
    )
    return await _shown_version(call, await call.create(command))


@router.get("/models/{name}/versions/{number}", ("view", "model"))
async def get_version(call: Authenticated, name: str, number: int) -> Response:
    """One version."""
    return await _shown_version(call, find_version(call.catalogue.state, name, number).id)


@router.patch("/models/{name}/versions/{number}", ("edit", "model"))
async def change_version(call: Authenticated, name: str, number: int, body: VersionBody) -> Response:
    """Change the given fields of a version."""
    version = find_version(call.catalogue.state, name, number)
    command = SetVersion(model_id=version.model_id, number=number, user=call.user.username, **body.changes())
    await call.peers.command(command)
    return await _shown_version(call, version.id)


@router.delete("/models/{name}/versions/{number}", ("delete", "model"))
async def remove_version(call: Authenticated, name: str, number: int) -> Response:
    """Delete a version. Its checkpoint becomes subject to the retention rules."""
    version = find_version(call.catalogue.state, name, number)
    command = RemoveVersion(model_id=version.model_id, number=number, user=call.user.username)
    await call.peers.command(command)
    return call.answer({})
