"""What the checkpoints service knows, and how each event changes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from det_contracts import ids
from det_contracts.envelope import Recorded
from det_contracts.events import checkpoints, metrics, scheduler, searcher, trial
from services.checkpoints.retention import Keep

Key = tuple[str, Any]
CheckpointState = Literal["COMPLETED", "DELETED", "ERROR"]
TRIES = 3
"""Tasks that try to delete a checkpoint before it is given up as ERROR: workers can be lost."""
replace = msgspec.structs.replace


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """What of an experiment matters to its checkpoints."""

    id: int
    keep: Keep
    smaller_is_better: bool
    source: str | None
    """Checkpoint that its trials started from."""
    trials: tuple[int, ...] = ()
    ended: bool = False
    pool: str = "default"
    deletions: int = 0
    """Tasks asked for so far."""
    deleting: bool = False
    """All its checkpoints shall go, whatever retention says."""


class Validation(msgspec.Struct, frozen=True):
    """A trial's validation at some number of steps."""

    metric: float | None
    number: int
    """Place in the order in which validations were accepted, over all trials."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What of a trial matters to its checkpoints."""

    id: int
    experiment_id: int
    settled: bool = False
    """It is over, and all its validations are known."""
    stored: tuple[str, ...] = ()
    """Its checkpoints, in the order they were stored."""
    validations: dict[int, Validation] = {}
    """By steps completed; once it is settled, only those at steps that have a checkpoint."""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint of the registry."""

    uuid: str
    trial_id: int
    experiment_id: int
    task_id: str
    allocation_id: str
    at: float
    """When it was reported; seconds since the epoch, UTC."""
    order: int
    """Position of the report in the log."""
    state: CheckpointState = "COMPLETED"
    resources: dict[str, int]
    metadata: dict[str, Any]
    steps_completed: int
    going: bool = False
    """A task was asked to delete it, and is not over."""
    tries: int = 0
    """Tasks that were asked to delete it."""
    reason: str = ""
    """Why it went, or could not."""


class Deletion(msgspec.Struct, frozen=True, kw_only=True):
    """A task that deletes checkpoints, until its end is stated."""

    task_id: str
    experiment_id: int
    uuids: tuple[str, ...]
    why: str = ""
    outcome: str | None = None
    """How the task's run ended; None while it has not."""
    reason: str = ""


@dataclass
class State:
    """Everything that the checkpoints service folds out of the log."""

    experiments: dict[int, Experiment] = field(default_factory=dict)
    trials: dict[int, Trial] = field(default_factory=dict)
    checkpoints: dict[str, Checkpoint] = field(default_factory=dict)
    deletions: dict[str, Deletion] = field(default_factory=dict)


def evolve(state: State, recorded: Recorded) -> Iterable[Key]:
    """Fold one event; returns the records that it replaced. Events that do not concern it pass by."""
    fold = _FOLDS.get(type(recorded.event))
    return fold(state, recorded) if fold is not None else ()


def _experiment_created(state: State, recorded: Recorded) -> Iterable[Key]:
    event: searcher.ExperimentCreated = recorded.event
    storage = event.config["checkpoint_storage"]
    state.experiments[event.experiment_id] = Experiment(
        id=event.experiment_id,
        keep=Keep(storage["save_experiment_best"], storage["save_trial_best"], storage["save_trial_latest"]),
        smaller_is_better=event.config["searcher"].get("smaller_is_better", True),
        source=event.source_checkpoint,
        pool=(event.config.get("resources") or {}).get("resource_pool") or "default",
    )
    yield "experiments", event.experiment_id


def _experiment_ended(state: State, recorded: Recorded) -> Iterable[Key]:
    id = recorded.event.experiment_id
    state.experiments[id] = replace(state.experiments[id], ended=True)
    yield "experiments", id


def _revised(state: State, recorded: Recorded) -> Iterable[Key]:
    event: searcher.ExperimentRevised = recorded.event
    known = state.experiments[event.experiment_id]
    changed = {f: event.changes[key] for f, key in _KEPT_BY.items() if key in event.changes}
    state.experiments[known.id] = replace(known, keep=replace(known.keep, **changed))
    yield "experiments", known.id


_KEPT_BY = {
    "experiment_best": "checkpoint_storage.save_experiment_best",
    "trial_best": "checkpoint_storage.save_trial_best",
    "trial_latest": "checkpoint_storage.save_trial_latest",
}


def _deleting(state: State, recorded: Recorded) -> Iterable[Key]:
    known = state.experiments[recorded.event.experiment_id]
    state.experiments[known.id] = replace(known, deleting=True)
    yield "experiments", known.id
    # What could not be deleted before is tried again: a person asks for it.
    for uuid in (uuid for id in known.trials for uuid in state.trials[id].stored):
        found = state.checkpoints[uuid]
        if found.state == "ERROR":
            state.checkpoints[uuid] = replace(found, state="COMPLETED", tries=0)
            yield "checkpoints", uuid


def _emptied(state: State, recorded: Recorded) -> Iterable[Key]:
    known = state.experiments[recorded.event.experiment_id]
    state.experiments[known.id] = replace(known, deleting=False)
    yield "experiments", known.id


def _deleted(state: State, recorded: Recorded) -> Iterable[Key]:
    event: searcher.ExperimentDeleted = recorded.event
    if event.state != "DELETED":
        return
    gone = state.experiments.pop(event.experiment_id)
    if gone.source in state.checkpoints:
        # It protects the checkpoint that it started from no longer.
        yield "experiments", state.checkpoints[gone.source].experiment_id
    for id in gone.trials:
        for uuid in state.trials.pop(id).stored:
            del state.checkpoints[uuid]
            yield "checkpoints", uuid
        yield "trials", id
    yield "experiments", event.experiment_id


def _trial_created(state: State, recorded: Recorded) -> Iterable[Key]:
    event: searcher.TrialCreated = recorded.event
    experiment = state.experiments[event.experiment_id]
    state.experiments[experiment.id] = replace(experiment, trials=(*experiment.trials, event.trial_id))
    state.trials[event.trial_id] = Trial(id=event.trial_id, experiment_id=event.experiment_id)
    yield "experiments", experiment.id
    yield "trials", event.trial_id


def _validated(state: State, recorded: Recorded) -> Iterable[Key]:
    event: metrics.Validated = recorded.event
    known = state.trials.get(event.trial_id)
    if known is None:
        return
    # A later run that validates at the same steps again replaces what the earlier one found.
    found = known.validations | {event.steps_completed: Validation(event.metric, recorded.position)}
    state.trials[known.id] = replace(known, validations=found)
    yield "trials", known.id


def _settled(state: State, recorded: Recorded) -> Iterable[Key]:
    known = state.trials.get(recorded.event.trial_id)
    if known is None:
        return
    steps = {state.checkpoints[uuid].steps_completed for uuid in known.stored}
    found = {at: validation for at, validation in known.validations.items() if at in steps}
    state.trials[known.id] = replace(known, settled=True, validations=found)
    yield "trials", known.id
    yield "experiments", known.experiment_id


def _stored(state: State, recorded: Recorded) -> Iterable[Key]:
    event: trial.CheckpointStored = recorded.event
    known = state.trials.get(event.trial_id)
    # The id becomes a path that a task deletes one day, and it comes from a script.
    if event.uuid in state.checkpoints or known is None or not ids.is_token(event.uuid):
        return
    state.checkpoints[event.uuid] = Checkpoint(
        uuid=event.uuid,
        trial_id=known.id,
        experiment_id=known.experiment_id,
        task_id=event.task_id,
        allocation_id=event.allocation_id,
        at=recorded.at,
        order=recorded.position,
        resources=event.resources,
        metadata=event.metadata,
        steps_completed=event.steps_completed,
    )
    state.trials[known.id] = replace(known, stored=(*known.stored, event.uuid))
    yield "checkpoints", event.uuid
    yield "trials", known.id
    yield "experiments", known.experiment_id


def _deletion_requested(state: State, recorded: Recorded) -> Iterable[Key]:
    event: checkpoints.DeletionRequested = recorded.event
    state.deletions[event.task_id] = Deletion(
        task_id=event.task_id, experiment_id=event.experiment_id, uuids=event.uuids, why=event.reason
    )
    experiment = state.experiments[event.experiment_id]
    state.experiments[experiment.id] = replace(experiment, deletions=experiment.deletions + 1)
    for uuid in event.uuids:
        known = state.checkpoints[uuid]
        state.checkpoints[uuid] = replace(known, going=True, tries=known.tries + 1, reason=event.reason)
        yield "checkpoints", uuid
    yield "deletions", event.task_id
    yield "experiments", experiment.id


def _allocation_ended(state: State, recorded: Recorded) -> Iterable[Key]:
    event: scheduler.AllocationEnded = recorded.event
    if event.kind != "CHECKPOINT_GC":
        return
    task_id = ids.task_of(event.allocation_id)
    known = state.deletions.get(task_id)
    if known is None or known.outcome is not None:
        return
    state.deletions[task_id] = replace(known, outcome=event.outcome, reason=event.reason)
    yield "deletions", task_id


def _deletion_finished(state: State, recorded: Recorded) -> Iterable[Key]:
    event: checkpoints.DeletionFinished = recorded.event
    state.deletions.pop(event.task_id, None)
    yield "deletions", event.task_id
    yield "experiments", event.experiment_id
    for uuid in event.uuids:
        known = replace(state.checkpoints[uuid], going=False, reason=event.reason)
        if event.deleted:
            known = replace(known, state="DELETED", resources={})
        elif known.tries >= TRIES:
            known = replace(known, state="ERROR")
        state.checkpoints[uuid] = known
        yield "checkpoints", uuid


_FOLDS: dict[type, Callable[[State, Recorded], Iterable[Key]]] = {
    searcher.ExperimentCreated: _experiment_created,
    searcher.ExperimentEnded: _experiment_ended,
    searcher.ExperimentRevised: _revised,
    searcher.ExperimentDeleting: _deleting,
    searcher.ExperimentDeleted: _deleted,
    searcher.TrialCreated: _trial_created,
    metrics.Validated: _validated,
    metrics.Settled: _settled,
    trial.CheckpointStored: _stored,
    checkpoints.DeletionRequested: _deletion_requested,
    checkpoints.DeletionFinished: _deletion_finished,
    checkpoints.ExperimentEmptied: _emptied,
    scheduler.AllocationEnded: _allocation_ended,
}
