"""What the checkpoints service knows, and how each event changes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from det_contracts.envelope import Recorded
from det_contracts.events import checkpoints, metrics, scheduler, searcher, trial
from services.checkpoints.retention import Keep

Key = tuple[str, Any]
CheckpointState = Literal["COMPLETED", "DELETED", "ERROR"]
replace = msgspec.structs.replace


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """What of an experiment matters to its checkpoints."""

    id: int
    keep: Keep
    smaller_is_better: bool
    source: str | None
    """Checkpoint that its trials started from."""
    trials: tuple[int, ...] = ()
    stored: tuple[str, ...] = ()
    """Its checkpoints, in the order they were stored."""
    ended: bool = False
    deletions: int = 0
    """Tasks asked for so far."""


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
    validations: dict[int, Validation] = {}
    """By steps completed."""


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
    """A task was asked to delete it."""
    reason: str = ""
    """Why it went, or could not."""


class Deletion(msgspec.Struct, frozen=True, kw_only=True):
    """A task that deletes checkpoints."""

    task_id: str
    experiment_id: int
    uuids: tuple[str, ...]
    outcome: str | None = None
    """How the task's run ended; None while it has not."""
    reason: str = ""
    finished: bool = False


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
    )
    yield "experiments", event.experiment_id


def _experiment_ended(state: State, recorded: Recorded) -> Iterable[Key]:
    id = recorded.event.experiment_id
    state.experiments[id] = replace(state.experiments[id], ended=True)
    yield "experiments", id


def _trial_created(state: State, recorded: Recorded) -> Iterable[Key]:
    event: searcher.TrialCreated = recorded.event
    experiment = state.experiments[event.experiment_id]
    state.experiments[experiment.id] = replace(experiment, trials=(*experiment.trials, event.trial_id))
    state.trials[event.trial_id] = Trial(id=event.trial_id, experiment_id=event.experiment_id)
    yield "experiments", experiment.id
    yield "trials", event.trial_id


def _validated(state: State, recorded: Recorded) -> Iterable[Key]:
    event: metrics.Validated = recorded.event
    known = state.trials[event.trial_id]
    # A later run that validates at the same steps again replaces what the earlier one found.
    found = known.validations | {event.steps_completed: Validation(event.metric, recorded.position)}
    state.trials[known.id] = replace(known, validations=found)
    yield "trials", known.id
    yield from _stored_at(state, known, event.steps_completed)


def _stored_at(state: State, known: Trial, steps: int) -> Iterable[Key]:
    """Checkpoints whose metric is another one now."""
    for uuid in state.experiments[known.experiment_id].stored:
        checkpoint = state.checkpoints[uuid]
        if checkpoint.trial_id == known.id and checkpoint.steps_completed == steps:
            yield "checkpoints", uuid


def _settled(state: State, recorded: Recorded) -> Iterable[Key]:
    known = state.trials[recorded.event.trial_id]
    state.trials[known.id] = replace(known, settled=True)
    yield "trials", known.id
    yield "experiments", known.experiment_id


def _stored(state: State, recorded: Recorded) -> Iterable[Key]:
    event: trial.CheckpointStored = recorded.event
    experiment = state.experiments.get(event.experiment_id)
    if event.uuid in state.checkpoints or experiment is None:
        return
    state.checkpoints[event.uuid] = Checkpoint(
        uuid=event.uuid,
        trial_id=event.trial_id,
        experiment_id=event.experiment_id,
        task_id=event.task_id,
        allocation_id=event.allocation_id,
        at=recorded.at,
        order=recorded.position,
        resources=event.resources,
        metadata=event.metadata,
        steps_completed=event.steps_completed,
    )
    state.experiments[experiment.id] = replace(experiment, stored=(*experiment.stored, event.uuid))
    yield "checkpoints", event.uuid
    yield "experiments", experiment.id


def _deletion_requested(state: State, recorded: Recorded) -> Iterable[Key]:
    event: checkpoints.DeletionRequested = recorded.event
    state.deletions[event.task_id] = Deletion(
        task_id=event.task_id, experiment_id=event.experiment_id, uuids=event.uuids
    )
    experiment = state.experiments[event.experiment_id]
    state.experiments[experiment.id] = replace(experiment, deletions=experiment.deletions + 1)
    for uuid in event.uuids:
        known = state.checkpoints[uuid]
        state.checkpoints[uuid] = replace(known, going=True, reason=event.reason)
        yield "checkpoints", uuid
    yield "deletions", event.task_id
    yield "experiments", experiment.id


def _allocation_ended(state: State, recorded: Recorded) -> Iterable[Key]:
    event: scheduler.AllocationEnded = recorded.event
    task_id = event.allocation_id.rpartition(".")[0]
    known = state.deletions.get(task_id)
    if known is None or known.outcome is not None:
        return
    state.deletions[task_id] = replace(known, outcome=event.outcome, reason=event.reason)
    yield "deletions", task_id


def _deletion_finished(state: State, recorded: Recorded) -> Iterable[Key]:
    event: checkpoints.DeletionFinished = recorded.event
    state.deletions[event.task_id] = replace(state.deletions[event.task_id], finished=True)
    yield "deletions", event.task_id
    for uuid in event.uuids:
        known = state.checkpoints[uuid]
        to: CheckpointState = "DELETED" if event.deleted else "ERROR"
        resources = {} if event.deleted else known.resources
        state.checkpoints[uuid] = replace(known, state=to, resources=resources, reason=event.reason)
        yield "checkpoints", uuid


_FOLDS: dict[type, Callable[[State, Recorded], Iterable[Key]]] = {
    searcher.ExperimentCreated: _experiment_created,
    searcher.ExperimentEnded: _experiment_ended,
    searcher.TrialCreated: _trial_created,
    metrics.Validated: _validated,
    metrics.Settled: _settled,
    trial.CheckpointStored: _stored,
    checkpoints.DeletionRequested: _deletion_requested,
    checkpoints.DeletionFinished: _deletion_finished,
    scheduler.AllocationEnded: _allocation_ended,
}
