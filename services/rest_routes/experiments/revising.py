"""Changes to existing experiments, one or many at once (REST spec, section 3)."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import getitem
from typing import Any

import sqlalchemy as sa
from starlette.responses import Response

from det_contracts import expconf
from det_contracts.commands import Action, ChangeExperiment, ChangeJob, MoveExperiment, ReviseExperiment
from det_contracts.problems import Refused, failed_precondition, invalid
from services.catalogue import listing
from services.catalogue.display_state import STATES
from services.catalogue.domain import Experiment
from services.catalogue.listing import ExperimentFilter
from services.people import users
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.bodies import Bulk, BulkMove, ExperimentMove
from services.rest_requests.body import request_schema
from services.rest_requests.streaming import while_connected
from services.rest_routes.experiments.experiments import show
from services.rest_routes.present.experiment import present_config
from services.web.query import enum_names
from services.web.routes import Routes

router = Routes()
BULK_ACTIONS: tuple[Action, ...] = ("activate", "pause", "cancel", "kill", "archive", "unarchive")
_FIELDS = {
    "name": ("name",),
    "description": ("description",),
    "labels": ("labels",),
    "notes": ("notes",),
    "resources": ("maxSlots", "weight", "priority"),
    "checkpointStorage": ("saveExperimentBest", "saveTrialBest", "saveTrialLatest"),
}
_SCHEMA = {
    "type": "object",
    "properties": {
        group: {"type": ["object", "null"]} if len(names) > 1 else {} for group, names in _FIELDS.items()
    },
}
_JOB_FIELDS = {
    "resources.max_slots": "max_slots",
    "resources.weight": "weight",
    "resources.priority": "priority",
}


@router.patch(
    "/experiments/{experiment_id}", ("edit", "experiment"), **request_schema(_SCHEMA, required=False)
)
async def revise(call: Authenticated, experiment_id: int) -> Response:
    """Change an experiment while it exists. All changes are validated before any is applied."""
    experiment = call.catalogue.experiment(experiment_id)
    changes = _changes(await call.json())
    changes |= _checked(
        present_config(experiment, call.catalogue.submission(experiment_id)),
        {field: value for field, value in changes.items() if field != "notes"},
    )
    if any(field in _JOB_FIELDS for field in changes):
        _check_has_job(experiment)
    user = call.user.username
    share = {_JOB_FIELDS[field]: value for field, value in changes.items() if field in _JOB_FIELDS}
    rest = {field: value for field, value in changes.items() if field not in _JOB_FIELDS}
    # Two services own the two parts, and no transaction spans them: everything was checked above, and the
    # part that depends on the queue goes first.
    if share:
        await call.peers.command(ChangeJob(experiment_id=experiment_id, user=user, **share))
    if rest:
        await call.peers.command(ReviseExperiment(experiment_id=experiment_id, changes=rest, user=user))
    return call.answer({"experiment": await show(call, experiment_id)})


def _check_has_job(experiment: Experiment) -> None:
    if experiment.unmanaged:
        raise failed_precondition(
            f"experiment {experiment.id} is unmanaged: it has no slots, and no place in the queue"
        )
    if experiment.ended_at is not None:
        raise failed_precondition(
            f"experiment {experiment.id} is {experiment.state}: it has no place in the queue any more"
        )


def _checked(config: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The changes as a configuration holds them, with integers for whole numbers and each label once."""
    try:
        revised = expconf.revise(config, changes)
    except expconf.ConfigErrors as errors:
        raise invalid(str(errors)) from None
    return {field: reduce(getitem, field.split("."), revised) for field in changes}


def _changes(body: Any) -> dict[str, Any]:
    """Dotted configuration fields and their new values, and notes. Unknown fields are ignored."""
    if not isinstance(body, dict):
        raise invalid("the request: a JSON object is expected")
    changes: dict[str, Any] = {}
    for group, names in _FIELDS.items():
        values = _field_value(body, group)
        if len(names) == 1:
            changes |= {group: values[0]} if values else {}
            continue
        inner = values[0] if values else {}
        if not isinstance(inner, dict):
            raise invalid(f"{group}: a JSON object is expected, not {inner!r}")
        for name in names:
            value = _field_value(inner, name)
            changes |= {f"{_snake(group)}.{_snake(name)}": value[0]} if value else {}
    if not isinstance(notes := changes.get("notes", ""), str):
        raise invalid(f"notes: a text is expected, not {notes!r}")
    return changes


def _field_value(body: dict[str, Any], name: str) -> list[Any]:
    # Older clients write snake_case. Null is a field that was not sent, but removes a limit.
    values = [body[key] for key in (name, _snake(name)) if key in body][:1]
    return values if name == "maxSlots" or values != [None] else []


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


# Before the route with an id, which would otherwise match.
@router.delete("/experiments/delete", ("delete", "body"))
async def delete_many(call: Authenticated, body: Bulk) -> Response:
    """Delete several experiments. The deletion continues after the answer."""
    return await _change_all(call, body, "delete")


@router.delete("/experiments/{experiment_id}", ("delete", "experiment"))
async def delete(call: Authenticated, experiment_id: int) -> Response:
    """Delete an experiment with its checkpoints, metrics and logs. This continues after the answer."""
    return await _change(call, experiment_id, "delete")


@router.post("/experiments/{experiment_id}/archive", ("control", "experiment"))
async def archive(call: Authenticated, experiment_id: int) -> Response:
    """Archive an experiment, which hides it from the default lists."""
    return await _change(call, experiment_id, "archive")


@router.post("/experiments/{experiment_id}/unarchive", ("control", "experiment"))
async def unarchive(call: Authenticated, experiment_id: int) -> Response:
    """Unarchive an experiment."""
    return await _change(call, experiment_id, "unarchive")


def _check_deletable(call: UserCall, experiment_id: int) -> None:
    """Refuse early if checkpoints are registered. The checkpoints service enforces this in any case."""
    state = call.catalogue.state
    for version in state.versions.values():
        registered = state.checkpoints.get(version.checkpoint)
        if registered is not None and registered.experiment_id == experiment_id:
            model = state.models[version.model_id].name
            raise failed_precondition(
                f"experiment {experiment_id} cannot be deleted: its checkpoints are registered as model "
                f"versions, such as {version.checkpoint} in model '{model}'"
            )


async def _change(call: UserCall, experiment_id: int, action: Action) -> Response:
    if action == "delete":
        _check_deletable(call, experiment_id)
    command = ChangeExperiment(experiment_id=experiment_id, action=action, user=call.user.username)
    await call.peers.command(command)
    return call.answer({})


@router.post("/experiments/move", ("control", "body"))
async def move_many(call: Authenticated, body: BulkMove) -> Response:
    """Move several experiments to another project."""

    def command(id: int) -> MoveExperiment:
        project_id = body.destination_project_id
        return MoveExperiment(experiment_id=id, project_id=project_id, user=call.user.username)

    return await _command_all(call, body, command)


@router.post("/experiments/{experiment_id}/move", ("control", "experiment"))
async def move(call: Authenticated, experiment_id: int, body: ExperimentMove) -> Response:
    """Move an experiment to another project."""
    project_id = body.destination_project_id
    command = MoveExperiment(experiment_id=experiment_id, project_id=project_id, user=call.user.username)
    await call.peers.command(command)
    return call.answer({})


def _add_bulk(action: Action) -> None:
    async def change_all(call: Authenticated, body: Bulk) -> Response:
        return await _change_all(call, body, action)

    change_all.__doc__ = f"{action.capitalize()} experiments, given by ids or filters."
    path = f"/experiments/{action}"
    router.add_api_route(path, change_all, ("control", "body"), methods=["POST"], name=f"{action} many")


for _action in BULK_ACTIONS:
    _add_bulk(_action)


async def _change_all(call: UserCall, body: Bulk, action: Action) -> Response:
    def command(id: int) -> ChangeExperiment:
        return ChangeExperiment(experiment_id=id, action=action, user=call.user.username)

    return await _command_all(call, body, command, action)


async def _command_all(
    call: UserCall, body: Bulk, command: Callable[[int], Any], action: Action | None = None
) -> Response:
    results = []
    # One after another: thousands of commands at once would keep those of others waiting.
    async for id in while_connected(call, await _selected_ids(call, body)):
        try:
            if action == "delete":
                _check_deletable(call, id)
            await call.peers.command(command(id))
            results.append({"id": id, "error": ""})
        except Refused as refusal:
            results.append({"id": id, "error": refusal.problem.message})
    return call.answer({"results": results})


async def _selected_ids(call: UserCall, body: Bulk) -> list[int]:
    if body.filters is None:
        return list(dict.fromkeys(body.experiment_ids))
    filters = body.filters
    experiment_filter = ExperimentFilter(
        name=filters.name,
        description=filters.description,
        labels=filters.labels,
        archived=filters.archived,
        states=enum_names("filters.states", filters.states, "STATE_", STATES),
        users=users.names_of(call.catalogue.state, [], filters.user_ids),
        project_id=filters.project_id,
        ids=body.experiment_ids,
        # A filter must not find out, by what is refused, which experiments exist elsewhere.
        projects=call.visibility.visible_projects(),
    )

    def read(connection: sa.Connection) -> list[int]:
        return listing.all_experiment_ids(connection, experiment_filter)

    ids = await call.catalogue.read(read)
    return [id for id in ids if id not in filters.excluded_experiment_ids]
