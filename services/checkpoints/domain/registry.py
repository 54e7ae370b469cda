"""Models and their versions."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from det_contracts.envelope import Recorded
from det_contracts.events import checkpoints
from services.checkpoints.domain.state import Key, Model, State

replace = msgspec.structs.replace


def model_set(state: State, recorded: Recorded) -> Iterable[Key]:
    """A model is there, or is described so."""
    event: checkpoints.ModelSet = recorded.event
    known = state.models.get(event.model_id)
    state.models[event.model_id] = replace(known, told=event) if known else Model(told=event)
    yield "models", event.model_id


def model_removed(state: State, recorded: Recorded) -> Iterable[Key]:
    """A model is gone with its versions."""
    known = state.models.pop(recorded.event.model_id, None)
    if known is None:
        return
    yield "models", recorded.event.model_id
    for id in known.versions:
        yield from _forget(state, id)


def version_set(state: State, recorded: Recorded) -> Iterable[Key]:
    """A checkpoint is a version, or the version is described so."""
    event: checkpoints.VersionSet = recorded.event
    model = state.models.get(event.model_id)
    if model is None:
        return
    if event.version_id not in state.versions:
        versions, numbers = (*model.versions, event.version_id), max(model.numbers, event.number)
        state.models[event.model_id] = replace(model, versions=versions, numbers=numbers)
        yield "models", event.model_id
        yield from _count(state, event.checkpoint, 1)
    state.versions[event.version_id] = event
    yield "versions", event.version_id


def version_removed(state: State, recorded: Recorded) -> Iterable[Key]:
    """A checkpoint is a version no longer."""
    event: checkpoints.VersionRemoved = recorded.event
    model = state.models.get(event.model_id)
    if model is None or event.version_id not in state.versions:
        return
    left = tuple(id for id in model.versions if id != event.version_id)
    state.models[event.model_id] = replace(model, versions=left)
    yield "models", event.model_id
    yield from _forget(state, event.version_id)


def _forget(state: State, version_id: int) -> Iterable[Key]:
    gone = state.versions.pop(version_id)
    yield "versions", version_id
    yield from _count(state, gone.checkpoint, -1)


def _count(state: State, uuid: str, change: int) -> Iterable[Key]:
    known = state.checkpoints.get(uuid)
    if known is None:
        return
    state.checkpoints[uuid] = replace(known, versions=known.versions + change)
    yield "checkpoints", uuid
    if change < 0:
        # Retention may want it now.
        yield "experiments", known.experiment_id
