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
    known = state.models.get(event.model_id)
    if known is not None:
        state.names.pop(known.told.name, None)
    state.names[event.name] = event.model_id
    state.models[event.model_id] = replace(known, told=event) if known else Model(told=event)
    yield "models", event.model_id
    yield from _given(state, models=event.model_id)


def model_removed(state: State, recorded: Recorded) -> Iterable[Key]:
    """Remove a model and its versions."""
    known = state.models.pop(recorded.event.model_id, None)
    if known is None:
        return
    state.names.pop(known.told.name, None)
    yield "models", recorded.event.model_id
    for id in list(state.numbers.ids(recorded.event.model_id)):
        yield from _forget(state, id)


def version_set(state: State, recorded: Recorded) -> Iterable[Key]:
    """Register a version or change its description."""
    event: checkpoints.VersionSet = recorded.event
    model = state.models.get(event.model_id)
    if model is None:
        return
    if event.version_id not in state.versions:
        state.models[event.model_id] = replace(model, numbers=max(model.numbers, event.number))
        yield "models", event.model_id
        yield from _given(state, versions=event.version_id)
        state.numbers.add(event.model_id, event.number, event.version_id)
        state.registered.add(event.checkpoint, event.version_id)
        yield from _count(state, event.checkpoint, 1)
    state.versions[event.version_id] = event
    yield "versions", event.version_id


def version_removed(state: State, recorded: Recorded) -> Iterable[Key]:
    """Remove a version."""
    event: checkpoints.VersionRemoved = recorded.event
    if event.model_id in state.models and event.version_id in state.versions:
        yield from _forget(state, event.version_id)


def _given(state: State, *, models: int = 0, versions: int = 0) -> Iterable[Key]:
    """Record that ids were assigned, so that they are never reused."""
    known = state.totals.get("all", Totals())
    state.totals["all"] = Totals(max(known.models, models), max(known.versions, versions))
    yield "totals", "all"


def _forget(state: State, version_id: int) -> Iterable[Key]:
    gone = state.versions.pop(version_id)
    state.numbers.discard(gone.model_id, gone.number, version_id)
    state.registered.discard(gone.checkpoint, version_id)
    yield "versions", version_id
    yield from _count(state, gone.checkpoint, -1)


def _count(state: State, uuid: str, change: int) -> Iterable[Key]:
    known = state.checkpoints.get(uuid)
    if known is None:
        return
    yield from state.put_checkpoint(replace(known, versions=known.versions + change))
    if change < 0:
        # Retention may now delete the checkpoint.
        yield "experiments", known.experiment_id
