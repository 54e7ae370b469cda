"""How each event changes the checkpoints service's state."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from det_contracts import ids
from det_contracts.envelope import Recorded
from det_contracts.events import checkpoints, gateway, metrics, scheduler, searcher, trial
from services.checkpoints.domain import registry
from services.checkpoints.domain.state import (
    FAILED,
    TRIES,
    Checkpoint,
    CheckpointState,
    Deletion,
    Experiment,
    Key,
    State,
    Trial,
    Validation,
)
from services.checkpoints.retention import Keep
from services.kit.idempotency import keep

replace = msgspec.structs.replace


def evolve(state: State, recorded: Recorded) -> Iterable[Key]:
    """Fold one event and return the keys of the changed records. Irrelevant events are ignored."""
    fold = _FOLDS.get(type(recorded.event))
    return fold(state, recorded) if fold is not None else ()


def _experiment_created(state: State, recorded: Recorded) -> Iterable[Key]:
    event: searcher.ExperimentCreated = recorded.event
    storage = event.config["checkpoint_storage"]
    created = Experiment(
        id=event.experiment_id,
        keep=Keep(storage["save_experiment_best"], storage["save_trial_best"], storage["save_trial_latest"]),
        smaller_is_better=event.config["searcher"].get("smaller_is_better", True),
        source=event.source_checkpoint,
        pool=(event.config.get("resources") or {}).get("resource_pool") or "default",
        retains=not event.unmanaged,
    )
    return state.put_experiment(created)


def _experiment_ended(state: State, recorded: Recorded) -> Iterable[Key]:
    return state.put_experiment(replace(state.experiments[recorded.event.experiment_id], ended=True))


def _activated(state: State, recorded: Recorded) -> Iterable[Key]:
    """An unmanaged experiment may continue after its end."""
    known = state.experiments[recorded.event.experiment_id]
    return state.put_experiment(replace(known, ended=False)) if known.ended else ()


def _run_opened(state: State, recorded: Recorded) -> Iterable[Key]:
    known = state.trials[recorded.event.trial_id]
    if known.settled:
        yield from state.put_trial(replace(known, settled=False))
        yield from _unsettled(state, known, 1)


def _unsettled(state: State, known: Trial, change: int) -> Iterable[Key]:
    experiment = state.experiments[known.experiment_id]
    return state.put_experiment(replace(experiment, unsettled=experiment.unsettled + change))


def _revised(state: State, recorded: Recorded) -> Iterable[Key]:
    event: searcher.ExperimentRevised = recorded.event
    known = state.experiments[event.experiment_id]
    changed = {f: event.changes[key] for f, key in _KEPT_BY.items() if key in event.changes}
    retains = known.retains or bool(changed)
    return state.put_experiment(replace(known, keep=replace(known.keep, **changed), retains=retains))


_KEPT_BY = {
    "experiment_best": "checkpoint_storage.save_experiment_best",
    "trial_best": "checkpoint_storage.save_trial_best",
    "trial_latest": "checkpoint_storage.save_trial_latest",
}


def _deleting(state: State, recorded: Recorded) -> Iterable[Key]:
    known = state.experiments[recorded.event.experiment_id]
    yield from state.put_experiment(replace(known, deleting=True, sweeps=0))
    # Retry what could not be deleted before, since a person asks for it.
    for found in list(state.those(known.id, FAILED)):
        yield from state.put_checkpoint(replace(found, state="COMPLETED", tries=0))


def _emptied(state: State, recorded: Recorded) -> Iterable[Key]:
    known = state.experiments[recorded.event.experiment_id]
    return state.put_experiment(replace(known, deleting=False))


def _trials_deleted(state: State, recorded: Recorded) -> Iterable[Key]:
    for id in recorded.event.trial_ids:
        if id in state.trials:
            yield from state.drop_trial(id)


def _deleted(state: State, recorded: Recorded) -> Iterable[Key]:
    event: searcher.ExperimentDeleted = recorded.event
    if event.state != "DELETED":
        return
    known = state.experiments[event.experiment_id]
    # Logs from before `TrialsDeleted` leave the trials in place.
    for id in list(state.trials_of.ids(known.id)):
        yield from state.drop_trial(id)
    yield from state.drop_experiment(known.id)


def _trial_created(state: State, recorded: Recorded) -> Iterable[Key]:
    event: searcher.TrialCreated = recorded.event
    fresh = Trial(id=event.trial_id, experiment_id=event.experiment_id)
    yield from state.put_trial(fresh)
    yield from _unsettled(state, fresh, 1)


def _validated(state: State, recorded: Recorded) -> Iterable[Key]:
    event: metrics.Validated = recorded.event
    known = state.trials.get(event.trial_id)
    if known is None:
        return
    # A later run that validates at the same steps replaces the earlier result.
    found = Validation(event.metric, recorded.position)
    yield from state.put_validation(known.id, event.steps_completed, found)


def _settled(state: State, recorded: Recorded) -> Iterable[Key]:
    known = state.trials.get(recorded.event.trial_id)
    if known is None:
        return
    for steps in list(state.unsaved.ids(known.id)):
        yield from state.drop_validation(known.id, steps)
    yield from state.put_trial(replace(known, settled=True))
    yield from _unsettled(state, known, 0 if known.settled else -1)


def _stored(state: State, recorded: Recorded) -> Iterable[Key]:
    event: trial.CheckpointStored = recorded.event
    known = state.trials.get(event.trial_id)
    # The id comes from a script, and a task will use it as a path to delete.
    if event.uuid in state.checkpoints or known is None or not ids.is_token(event.uuid):
        return
    fresh = Checkpoint(
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
    yield from state.put_checkpoint(fresh)
    yield "experiments", known.experiment_id


def _deletion_requested(state: State, recorded: Recorded) -> Iterable[Key]:
    event: checkpoints.DeletionRequested = recorded.event
    state.deletions[event.task_id] = Deletion(
        task_id=event.task_id,
        experiment_id=event.experiment_id,
        uuids=event.uuids,
        globs=event.globs,
        sweep=event.sweep,
        why=event.reason,
    )
    experiment = state.experiments[event.experiment_id]
    yield from state.put_experiment(
        replace(
            experiment,
            deletions=experiment.deletions + 1,
            sweeping=experiment.sweeping or event.sweep,
        )
    )
    for uuid in event.uuids:
        known = state.checkpoints[uuid]
        asked = replace(known, going=True, task=event.task_id, tries=known.tries + 1, reason=event.reason)
        yield from state.put_checkpoint(asked)
    yield "deletions", event.task_id


def _allocation_ended(state: State, recorded: Recorded) -> Iterable[Key]:
    event: scheduler.AllocationEnded = recorded.event
    trial = state.trials.get(event.trial_id) if event.trial_id is not None else None
    if trial is not None and not state.experiments[trial.experiment_id].ran:
        yield from state.put_experiment(replace(state.experiments[trial.experiment_id], ran=True))
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
    experiment = state.experiments.get(event.experiment_id)
    if event.sweep and experiment is not None:
        failed = 0 if event.deleted else 1
        yield from state.put_experiment(
            replace(experiment, sweeping=False, swept=event.deleted, sweeps=experiment.sweeps + failed)
        )
    elif experiment is not None and (experiment.deleting or not event.deleted):
        # A checkpoint that retention deleted calls for nothing more.
        yield "experiments", event.experiment_id
    for uuid in event.uuids:
        known = state.checkpoints[uuid]
        # Another task may have been requested in the meantime; until that one is over, the deletion is in
        # progress.
        known = replace(known, going=known.going and known.task != event.task_id, reason=event.reason)
        if event.deleted and event.globs is None:
            known = replace(known, state="DELETED", resources={})
        elif event.deleted:
            known = replace(known, tries=0)
        elif known.tries >= TRIES:
            known = replace(known, state="ERROR")
        yield from state.put_checkpoint(known)


def _files_listed(state: State, recorded: Recorded) -> Iterable[Key]:
    event: checkpoints.FilesListed = recorded.event
    known = state.checkpoints.get(event.uuid)
    if known is None or known.state == "DELETED":
        return
    if known.resources and not event.resources:
        # The list of its files stays on record, as clients of Determined expect.
        yield from state.put_checkpoint(replace(known, state="DELETED"))
        return
    gone = any(path not in event.resources for path in known.resources)
    partly: CheckpointState = "PARTIALLY_DELETED" if gone else known.state
    yield from state.put_checkpoint(replace(known, state=partly, resources=event.resources))


def _metadata_set(state: State, recorded: Recorded) -> Iterable[Key]:
    event: checkpoints.MetadataSet = recorded.event
    known = state.checkpoints.get(event.uuid)
    if known is not None:
        yield from state.put_checkpoint(replace(known, metadata=event.metadata))


def _experiment_moved(state: State, recorded: Recorded) -> Iterable[Key]:
    """Another workspace's quota now counts what it has stored."""
    id = recorded.event.experiment_id
    return state.put_weight(id, state.owed.amount(id)) if state.owed.amount(id) else ()


_FOLDS: dict[type, Callable[[State, Recorded], Iterable[Key]]] = {
    searcher.ExperimentCreated: _experiment_created,
    searcher.ExperimentActivated: _activated,
    searcher.ExperimentEnded: _experiment_ended,
    searcher.RunOpened: _run_opened,
    searcher.ExperimentRevised: _revised,
    searcher.ExperimentDeleting: _deleting,
    searcher.TrialsDeleted: _trials_deleted,
    searcher.ExperimentDeleted: _deleted,
    searcher.TrialCreated: _trial_created,
    metrics.Validated: _validated,
    metrics.Settled: _settled,
    trial.CheckpointStored: _stored,
    checkpoints.DeletionRequested: _deletion_requested,
    checkpoints.DeletionFinished: _deletion_finished,
    checkpoints.ExperimentEmptied: _emptied,
    checkpoints.FilesListed: _files_listed,
    checkpoints.MetadataSet: _metadata_set,
    checkpoints.ModelSet: registry.model_set,
    checkpoints.ModelRemoved: registry.model_removed,
    checkpoints.VersionSet: registry.version_set,
    checkpoints.VersionRemoved: registry.version_removed,
    checkpoints.CreationKept: keep,
    gateway.ExperimentMoved: _experiment_moved,
    scheduler.AllocationEnded: _allocation_ended,
}
