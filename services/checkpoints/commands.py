"""Commands that the checkpoints service accepts: deletions, descriptions, the model registry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from det_contracts.commands import (
    DeleteCheckpoints,
    ListFiles,
    RemoveModel,
    RemoveVersion,
    SetMetadata,
    SetModel,
    SetVersion,
    given_fields,
)
from det_contracts.events.checkpoints import (
    CreationKept,
    DeletionRequested,
    FilesListed,
    MetadataSet,
    ModelRemoved,
    ModelSet,
    VersionRemoved,
    VersionSet,
)
from det_contracts.problems import Problem, Refused, failed_precondition, invalid, not_found
from services.checkpoints.domain import Checkpoint, Model, State
from services.checkpoints.domain.state import Totals
from services.checkpoints.react import deletion_requests
from services.kit.authz.people import check_workspace
from services.kit.idempotency import idempotent
from services.kit.names import check_name, name_problem
from services.kit.rules import Call, Result

replace = msgspec.structs.replace
MAX_NAME_CHARACTERS = 256
MODEL_FIELDS = ("name", "description", "metadata", "labels", "notes", "archived", "workspace_id")
VERSION_FIELDS = ("name", "comment", "notes", "metadata", "labels")


def delete_checkpoints(state: State, command: DeleteCheckpoints, call: Call) -> Result:
    """Have tasks delete files. All checkpoints are validated before anything is decided."""
    targets: dict[int, list[str]] = {}
    for uuid in dict.fromkeys(command.uuids):
        checkpoint = _checkpoint(state, uuid)
        # An empty list of patterns deletes nothing: such a task only lists the files, and may do so for a
        # version.
        if checkpoint.versions and command.globs != ():
            raise failed_precondition(
                f"checkpoint {uuid} is registered as a version of model '{_model_of(state, uuid)}': "
                "remove the version first"
            )
        if checkpoint.state != "DELETED" and not (
            checkpoint.going and _is_deleted_entirely(state, checkpoint)
        ):
            targets.setdefault(checkpoint.experiment_id, []).append(uuid)
    events: list[DeletionRequested] = []
    reason = f"deleted by {command.user}" if command.globs is None else f"files deleted by {command.user}"
    for experiment_id, uuids in targets.items():
        _refuse_if_needed(state, experiment_id, uuids)
        events += deletion_requests(state.experiments[experiment_id], uuids, reason, command.globs)
    return Result(events)


def _refuse_if_needed(state: State, experiment_id: int, uuids: Sequence[str]) -> None:
    deleted = set(uuids)
    # A restart of one of its trials begins with that checkpoint again.
    for id in state.dependents.ids(experiment_id):
        other = state.experiments[id]
        if not other.ended and other.source in deleted:
            raise failed_precondition(
                f"experiment {other.id}, which has not ended, starts from checkpoint {other.source}"
            )


def _is_deleted_entirely(state: State, checkpoint: Checkpoint) -> bool:
    task = state.deletions.get(checkpoint.task)
    return task is not None and task.globs is None


def _model_of(state: State, uuid: str) -> str:
    version = state.versions[next(state.versions_of_checkpoint.ids(uuid))]
    return state.models[version.model_id].definition.name


def list_files(state: State, command: ListFiles, call: Call) -> Result:
    """Record the files that a deletion task found. Repeating the same list does nothing."""
    checkpoint = _checkpoint(state, command.uuid)
    task = state.deletions.get(command.task_id)
    if task is None or command.uuid not in task.uuids:
        raise failed_precondition(f"task {command.task_id} does not delete checkpoint {command.uuid}")
    if checkpoint.resources == command.resources:
        return Result()
    return Result([FilesListed(command.uuid, command.resources, f"seen by task {command.task_id}")])


def set_metadata(state: State, command: SetMetadata, call: Call) -> Result:
    """Change the metadata of a checkpoint."""
    if _checkpoint(state, command.uuid).metadata == command.metadata:
        return Result()
    return Result([MetadataSet(command.uuid, command.metadata, f"changed by {command.user}")])


def _checkpoint(state: State, uuid: str) -> Checkpoint:
    checkpoint = state.checkpoints.get(uuid)
    if checkpoint is None:
        raise not_found("checkpoint", uuid)
    return checkpoint


def set_model(state: State, command: SetModel, call: Call) -> Result:
    """Create a model, or change the given fields of one. Does nothing if they already have these values."""
    if command.model_id is None:
        id = state.totals.get("all", Totals()).models + 1
        before = ModelSet(model_id=id, name="", user=command.user, reason=f"made by {command.user}")
    else:
        id = command.model_id
        before = replace(_model(state, id).definition, reason=f"changed by {command.user}")
    wanted = replace(before, **given_fields(command, *MODEL_FIELDS))
    if wanted == before and before.name:
        return Result(value=id)
    if wanted.workspace_id != before.workspace_id:
        check_workspace(state, wanted.workspace_id)
    if before.archived and wanted.archived:
        raise failed_precondition(f"model '{before.name}' is archived; unarchive it first")
    if wanted.name != before.name or not wanted.name:
        _check_name(state, id, wanted.name)
    return Result([wanted], id)


def _name_problem(name: str, most: int) -> str:
    return "it has a '/'" if "/" in name else name_problem(name, most)


def _check_name(state: State, id: int, name: str) -> None:
    check_name("a model", name, MAX_NAME_CHARACTERS, _name_problem)
    if name.strip().isdecimal():
        raise invalid(f"a model's name must not be a number such as '{name}': those are ids")
    if state.model_names.get(name, id) != id:
        raise Refused(Problem("already_exists", f"there is already a model named '{name}'"))


def remove_model(state: State, command: RemoveModel, call: Call) -> Result:
    """Forget a model and its versions. Their checkpoints are then subject to retention."""
    _model(state, command.model_id)
    return Result([ModelRemoved(command.model_id, f"removed by {command.user}")])


def set_version(state: State, command: SetVersion, call: Call) -> Result:
    """Register a checkpoint as a version, or change the given fields of one."""
    model = _model(state, command.model_id)
    if model.definition.archived:
        raise failed_precondition(f"model '{model.definition.name}' is archived; unarchive it first")
    if command.number is None:
        version = _new_version(state, model, command)
    else:
        version = replace(_version(state, model, command.number), reason=f"changed by {command.user}")
    wanted = replace(version, **given_fields(command, *VERSION_FIELDS))
    if wanted == version and version.version_id in state.versions:
        return Result(value=version.version_id)
    return Result([wanted], wanted.version_id)


def _new_version(state: State, model: Model, command: SetVersion) -> VersionSet:
    checkpoint = _checkpoint(state, command.checkpoint)
    if checkpoint.going or checkpoint.state not in ("COMPLETED", "PARTIALLY_DELETED"):
        raise failed_precondition(f"checkpoint {checkpoint.uuid} is deleted, or is being deleted")
    return VersionSet(
        model_id=command.model_id,
        version_id=state.totals.get("all", Totals()).versions + 1,
        number=model.numbers + 1,
        checkpoint=checkpoint.uuid,
        user=command.user,
        reason=f"registered by {command.user}",
    )


def remove_version(state: State, command: RemoveVersion, call: Call) -> Result:
    """Forget a version."""
    version = _version(state, _model(state, command.model_id), command.number)
    return Result([VersionRemoved(command.model_id, version.version_id, f"removed by {command.user}")])


def _model(state: State, id: int) -> Model:
    model = state.models.get(id)
    if model is None:
        raise not_found("model", id)
    return model


def _version(state: State, model: Model, number: int) -> VersionSet:
    key = state.version_numbers.first(model.definition.model_id, number)
    if key is None:
        raise not_found(f"version of model '{model.definition.name}'", number)
    return state.versions[key[-1]]


COMMANDS: dict[Any, Callable[[State, Any, Call], Result]] = {
    DeleteCheckpoints: delete_checkpoints,
    ListFiles: list_files,
    SetMetadata: set_metadata,
    SetModel: idempotent(set_model, CreationKept),
    RemoveModel: remove_model,
    SetVersion: idempotent(set_version, CreationKept),
    RemoveVersion: remove_version,
}
