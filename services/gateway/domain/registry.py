"""The model registry in the catalogue."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from det_contracts.envelope import Recorded
from det_contracts.events import checkpoints
from services.gateway.domain.state import Model, ModelVersion, State
from services.kit.rules import Key

replace = msgspec.structs.replace


def model_set(state: State, recorded: Recorded) -> Iterable[Key]:
    """A model is there, or is described so."""
    event: checkpoints.ModelSet = recorded.event
    known = state.models.get(event.model_id)
    state.models[event.model_id] = Model(
        id=event.model_id,
        name=event.name,
        user=event.user,
        description=event.description,
        metadata=event.metadata,
        labels=event.labels,
        notes=event.notes,
        archived=event.archived,
        workspace_id=event.workspace_id,
        created_at=known.created_at if known else recorded.at,
        changed_at=recorded.at,
        versions=known.versions if known else (),
    )
    yield "models", event.model_id


def model_removed(state: State, recorded: Recorded) -> Iterable[Key]:
    """A model is gone with its versions; the checkpoints stay."""
    known = state.models.pop(recorded.event.model_id, None)
    if known is None:
        return
    yield "models", known.id
    for id in known.versions:
        state.versions.pop(id, None)
        yield "versions", id


def version_set(state: State, recorded: Recorded) -> Iterable[Key]:
    """A version is there, or is described so."""
    event: checkpoints.VersionSet = recorded.event
    model = state.models.get(event.model_id)
    if model is None:
        return
    known = state.versions.get(event.version_id)
    state.versions[event.version_id] = ModelVersion(
        id=event.version_id,
        model_id=model.id,
        number=event.number,
        checkpoint=event.checkpoint,
        user=event.user,
        name=event.name,
        comment=event.comment,
        notes=event.notes,
        metadata=event.metadata,
        labels=event.labels,
        created_at=known.created_at if known else recorded.at,
        changed_at=recorded.at,
    )
    versions = model.versions if known else (*model.versions, event.version_id)
    state.models[model.id] = replace(model, versions=versions, changed_at=recorded.at)
    yield "versions", event.version_id
    yield "models", model.id


def version_removed(state: State, recorded: Recorded) -> Iterable[Key]:
    """A version is gone; its number is not used again."""
    event: checkpoints.VersionRemoved = recorded.event
    if state.versions.pop(event.version_id, None) is None:
        return
    model = state.models[event.model_id]
    left = tuple(id for id in model.versions if id != event.version_id)
    state.models[model.id] = replace(model, versions=left, changed_at=recorded.at)
    yield "versions", event.version_id
    yield "models", model.id
