"""Validations and checkpoints in the catalogue: what the search and people compare by."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from det_contracts.envelope import Recorded
from det_contracts.events import checkpoints, metrics, trial
from services.gateway.domain.state import (
    Checkpoint,
    CheckpointState,
    Experiment,
    State,
    Trial,
    Validation,
    validation_key,
)
from services.kit.rules import Key

replace = msgspec.structs.replace


def validated(state: State, recorded: Recorded) -> Iterable[Key]:
    """A validation report was accepted."""
    event: metrics.Validated = recorded.event
    known = state.trials.get(event.trial_id)
    if known is None:
        return
    yield from _forget_overtaken(state, known, event)
    known = replace(state.trials[known.id], steps=max(known.steps, event.steps_completed))
    state.trials[known.id] = known
    yield "trials", known.id
    if event.metric is None:
        return
    found = Validation(known.id, event.run, event.steps_completed, event.metric, event.reported_at)
    key = validation_key(known.id, event.steps_completed)
    state.validations[key] = found
    yield "validations", key
    yield from _rank(state, known, found)
    yield from _measure(state, known, found)


def _forget_overtaken(state: State, known: Trial, event: metrics.Validated) -> Iterable[Key]:
    """A new run that starts over at a step makes void what older runs said from there on.

    REST spec, section 4, rule 2.
    """
    if known.latest is None or event.run <= known.latest.run or event.steps_completed > known.latest.steps:
        return
    own = [(key, v) for key, v in state.validations.items() if v.trial_id == known.id]
    for key, old in own:
        if old.run < event.run and old.steps >= event.steps_completed:
            del state.validations[key]
            yield "validations", key
    experiment = state.experiments[known.experiment_id]
    left = sorted((v for key, v in own if key in state.validations), key=lambda v: (v.run, v.steps))
    best = min(left, key=lambda v: _signed(experiment, v.metric), default=None)
    state.trials[known.id] = replace(known, best=best, latest=left[-1] if left else None)
    if experiment.best_trial == known.id:
        yield from _elect(state, experiment)


def _elect(state: State, experiment: Experiment) -> Iterable[Key]:
    """Find the best trial of all; the oldest among equals."""
    best = [v for id in experiment.trial_ids if (v := state.trials[id].best) is not None]
    winner = min(best, key=lambda v: _signed(experiment, v.metric), default=None)
    state.experiments[experiment.id] = replace(
        experiment,
        best_trial=winner.trial_id if winner else None,
        best_metric=winner.metric if winner else None,
    )
    yield "experiments", experiment.id


def _rank(state: State, known: Trial, found: Validation) -> Iterable[Key]:
    experiment = state.experiments[known.experiment_id]
    score = _signed(experiment, found.metric)
    if known.best is None or score < _signed(experiment, known.best.metric):
        known = replace(known, best=found)
    state.trials[known.id] = replace(known, latest=found)
    if experiment.best_metric is None or score < _signed(experiment, experiment.best_metric):
        state.experiments[experiment.id] = replace(experiment, best_trial=known.id, best_metric=found.metric)
        yield "experiments", experiment.id


def _measure(state: State, known: Trial, found: Validation) -> Iterable[Key]:
    for uuid in known.checkpoint_uuids:
        checkpoint = state.checkpoints[uuid]
        if checkpoint.steps == found.steps:
            state.checkpoints[uuid] = replace(checkpoint, metric=found.metric)
            yield "checkpoints", uuid


def _signed(experiment: Experiment, metric: float) -> float:
    return metric if experiment.smaller_is_better else -metric


def stored(state: State, recorded: Recorded) -> Iterable[Key]:
    """All bytes of a checkpoint are in the storage; the first one with its id counts."""
    event: trial.CheckpointStored = recorded.event
    known = state.trials.get(event.trial_id)
    if known is None or event.uuid in state.checkpoints:
        return
    validation = state.validations.get(validation_key(known.id, event.steps_completed))
    state.checkpoints[event.uuid] = Checkpoint(
        uuid=event.uuid,
        trial_id=known.id,
        experiment_id=known.experiment_id,
        task_id=event.task_id,
        allocation_id=event.allocation_id,
        at=recorded.at,
        steps=event.steps_completed,
        resources=event.resources,
        metadata=event.metadata,
        metric=validation.metric if validation else None,
    )
    known = replace(
        known,
        steps=max(known.steps, event.steps_completed),
        checkpoint_uuids=(*known.checkpoint_uuids, event.uuid),
    )
    state.trials[known.id] = known
    yield "checkpoints", event.uuid
    yield from _weigh(state, known, 1, sum(event.resources.values()))


def going(state: State, recorded: Recorded) -> Iterable[Key]:
    """A task shall delete checkpoints."""
    event: checkpoints.DeletionRequested = recorded.event
    for uuid in event.uuids:
        if uuid in state.checkpoints:
            state.checkpoints[uuid] = replace(state.checkpoints[uuid], going=True)
            yield "checkpoints", uuid


def deleted(state: State, recorded: Recorded) -> Iterable[Key]:
    """A deletion task is over. What it could not delete may be tried again, or is given up."""
    event: checkpoints.DeletionFinished = recorded.event
    for uuid in event.uuids:
        known = state.checkpoints.get(uuid)
        if known is None or known.state == "DELETED":
            continue
        yield "checkpoints", uuid
        if not event.deleted or event.globs is not None:
            state.checkpoints[uuid] = replace(known, going=False)
            continue
        state.checkpoints[uuid] = replace(known, going=False, state="DELETED", resources={})
        yield from _weigh(state, state.trials[known.trial_id], -1, -sum(known.resources.values()))


def metadata_set(state: State, recorded: Recorded) -> Iterable[Key]:
    """Somebody described a checkpoint otherwise."""
    event: checkpoints.MetadataSet = recorded.event
    known = state.checkpoints.get(event.uuid)
    if known is not None:
        state.checkpoints[known.uuid] = replace(known, metadata=event.metadata)
        yield "checkpoints", known.uuid


def files_listed(state: State, recorded: Recorded) -> Iterable[Key]:
    """What is left of a checkpoint after some of its files were deleted."""
    event: checkpoints.FilesListed = recorded.event
    known = state.checkpoints.get(event.uuid)
    if known is None or known.state == "DELETED":
        return
    gone = any(path not in event.resources for path in known.resources)
    partly: CheckpointState = "PARTIALLY_DELETED" if gone else known.state
    state.checkpoints[known.uuid] = replace(known, state=partly, resources=event.resources)
    yield "checkpoints", known.uuid
    change = sum(event.resources.values()) - sum(known.resources.values())
    yield from _weigh(state, state.trials[known.trial_id], 0, change)


def _weigh(state: State, known: Trial, count: int, size_bytes: int) -> Iterable[Key]:
    """Count a checkpoint in, or out, of its trial's and its experiment's totals."""
    state.trials[known.id] = replace(
        known,
        checkpoints=known.checkpoints + count,
        checkpoint_bytes=known.checkpoint_bytes + size_bytes,
    )
    experiment = state.experiments[known.experiment_id]
    state.experiments[experiment.id] = replace(
        experiment,
        checkpoints=experiment.checkpoints + count,
        checkpoint_bytes=experiment.checkpoint_bytes + size_bytes,
    )
    yield "trials", known.id
    yield "experiments", experiment.id
