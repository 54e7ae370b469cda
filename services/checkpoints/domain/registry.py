"""Models and their versions."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from det_contracts.envelope import Recorded
from det_contracts.events import checkpoints
from services.checkpoints.domain.state import Key, Model, State, Totals

replace = msgspec.structs.replace


def model_set(state: State, recorded: Recorded) -> Iterable[Key]:
    """Create a model or change its description."""
    event: checkpoints.ModelSet = recorded.event
    model = state.models.get(event.model_id)
    if model is not None:
        state.model_names.pop(model.definition.name, None)
    state.model_names[event.name] = event.model_id
    state.models[event.model_id] = replace(model, definition=event) if model else Model(definition=event)
    yield "models", event.model_id
    yield from _record_ids(state, models=event.model_id)


def model_removed(state: State, recorded: Recorded) -> Iterable[Key]:
    """Remove a model and its versions."""
    model = state.models.pop(recorded.event.model_id, None)
    if model is None:
        return
    state.model_names.pop(model.definition.name, None)
    yield "models", recorded.event.model_id
    for id in list(state.version_numbers.ids(recorded.event.model_id)):
        yield from _remove_version(state, id)


def version_set(state: State, recorded: Recorded) -> Iterable[Key]:
    """Register a version or change its description."""
    event: checkpoints.VersionSet = recorded.event
    model = state.models.get(event.model_id)
    if model is None:
        return
    if event.version_id not in state.versions:
        state.models[event.model_id] = replace(model, numbers=max(model.numbers, event.number))
        yield "models", event.model_id
        yield from _record_ids(state, versions=event.version_id)
        state.version_numbers.add(event.model_id, event.number, event.version_id)
        state.versions_of_checkpoint.add(event.checkpoint, event.version_id)
        yield from _count_versions(state, event.checkpoint, 1)
    state.versions[event.version_id] = event
    yield "versions", event.version_id


def version_removed(state: State, recorded: Recorded) -> Iterable[Key]:
    """Remove a version."""
    event: checkpoints.VersionRemoved = recorded.event
    if event.model_id in state.models and event.version_id in state.versions:
        yield from _remove_version(state, event.version_id)


def _record_ids(state: State, *, models: int = 0, versions: int = 0) -> Iterable[Key]:
    """Record that ids were assigned, so that they are never reused."""
    totals = state.totals.get("all", Totals())
    state.totals["all"] = Totals(max(totals.models, models), max(totals.versions, versions))
    yield "totals", "all"


def _remove_version(state: State, version_id: int) -> Iterable[Key]:
    removed = state.versions.pop(version_id)
    state.version_numbers.discard(removed.model_id, removed.number, version_id)
    state.versions_of_checkpoint.discard(removed.checkpoint, version_id)
    yield "versions", version_id
    yield from _count_versions(state, removed.checkpoint, -1)


def _count_versions(state: State, uuid: str, change: int) -> Iterable[Key]:
    checkpoint = state.checkpoints.get(uuid)
    if checkpoint is None:
        return
    yield from state.put_checkpoint(replace(checkpoint, versions=checkpoint.versions + change))
    if change < 0:
        # Retention may now delete the checkpoint.
        yield "experiments", checkpoint.experiment_id
