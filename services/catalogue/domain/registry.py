"""Folds events about the model registry."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from det_contracts.envelope import Recorded
from det_contracts.events import checkpoints
from services.catalogue.domain.indexed_records import drop_model, drop_version, put_model, put_version
from services.catalogue.domain.state import Model, ModelVersion, State
from services.kit.rules import Key

replace = msgspec.structs.replace


def model_set(state: State, recorded: Recorded) -> Iterable[Key]:
    """A model was created or changed."""
    event: checkpoints.ModelSet = recorded.event
    previous = state.models.get(event.model_id)
    changed = Model(
        id=event.model_id,
        name=event.name,
        user=event.user,
        description=event.description,
        metadata=event.metadata,
        labels=event.labels,
        notes=event.notes,
        archived=event.archived,
        workspace_id=event.workspace_id,
        created_at=previous.created_at if previous else recorded.at,
        changed_at=recorded.at,
        versions=previous.versions if previous else 0,
    )
    return put_model(state, changed)


def model_removed(state: State, recorded: Recorded) -> Iterable[Key]:
    """A model and its versions were removed. Their checkpoints remain."""
    return drop_model(state, recorded.event.model_id)


def version_set(state: State, recorded: Recorded) -> Iterable[Key]:
    """A version was created or changed."""
    event: checkpoints.VersionSet = recorded.event
    model = state.models.get(event.model_id)
    if model is None:
        return
    previous = state.versions.get(event.version_id)
    changed = ModelVersion(
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
        created_at=previous.created_at if previous else recorded.at,
        changed_at=recorded.at,
    )
    yield from put_version(state, changed)
    versions = model.versions if previous else model.versions + 1
    yield from put_model(state, replace(model, versions=versions, changed_at=recorded.at))


def version_removed(state: State, recorded: Recorded) -> Iterable[Key]:
    """A version was removed. Its number is not reused."""
    event: checkpoints.VersionRemoved = recorded.event
    if event.version_id not in state.versions:
        return
    yield from drop_version(state, event.version_id)
    model = state.models[event.model_id]
    yield from put_model(state, replace(model, versions=model.versions - 1, changed_at=recorded.at))
