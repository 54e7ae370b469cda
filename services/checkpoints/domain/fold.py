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
from services.kit.folds import Fold
from services.kit.idempotency import fold_result

replace = msgspec.structs.replace


def _experiment_created(state: State, recorded: Recorded) -> Iterable[Key]:
    event: searcher.ExperimentCreated = recorded.event
    storage = event.config["checkpoint_storage"]
    created = Experiment(
        id=event.experiment_id,
        keep=Keep(storage["save_experiment_best"], storage["save_trial_best"], storage["save_trial_latest"]),
        smaller_is_better=event.config["searcher"].get("smaller_is_better", True),
        source=event.source_checkpoint,
        pool=(event.config.get("resources") or {}).get("resource_pool") or "default",
        unmanaged=event.unmanaged,
        retains=not event.unmanaged,
    )
    return state.put_experiment(created)


def _experiment_ended(state: State, recorded: Recorded) -> Iterable[Key]:
    return state.put_experiment(replace(state.experiments[recorded.event.experiment_id], ended=True))


def _experiment_activated(state: State, recorded: Recorded) -> Iterable[Key]:
    """An unmanaged experiment may continue after its end."""
    experiment = state.experiments[recorded.event.experiment_id]
    return state.put_experiment(replace(experiment, ended=False)) if experiment.ended else ()


def _trial_ended(state: State, recorded: Recorded) -> Iterable[Key]:
    """An unmanaged trial may end again, with validations that are not judged yet."""
    trial_record = state.trials[recorded.event.trial_id]
    yield from state.put_trial(replace(trial_record, end=recorded.position, settled=False))
    yield from _change_unsettled(state, trial_record, 1 if trial_record.settled else 0)


def _change_unsettled(state: State, trial_record: Trial, change: int) -> Iterable[Key]:
    experiment = state.experiments[trial_record.experiment_id]
    return state.put_experiment(replace(experiment, unsettled=experiment.unsettled + change))


def _experiment_revised(state: State, recorded: Recorded) -> Iterable[Key]:
    event: searcher.ExperimentRevised = recorded.event
    experiment = state.experiments[event.experiment_id]
    changed = {f: event.changes[key] for f, key in _RETENTION_SETTINGS.items() if key in event.changes}
    retains = experiment.retains or bool(changed)
    return state.put_experiment(
        replace(experiment, keep=replace(experiment.keep, **changed), retains=retains)
    )


_RETENTION_SETTINGS = {
    "experiment_best": "checkpoint_storage.save_experiment_best",
    "trial_best": "checkpoint_storage.save_trial_best",
    "trial_latest": "checkpoint_storage.save_trial_latest",
}


def _experiment_deleting(state: State, recorded: Recorded) -> Iterable[Key]:
    experiment = state.experiments[recorded.event.experiment_id]
    yield from state.put_experiment(replace(experiment, deleting=True, sweeps=0))
    # Retry what could not be deleted before, since a person asks for it.
    for checkpoint in list(state.checkpoints_of_experiment(experiment.id, FAILED)):
        yield from state.put_checkpoint(replace(checkpoint, state="COMPLETED", tries=0))


def _experiment_emptied(state: State, recorded: Recorded) -> Iterable[Key]:
    experiment = state.experiments[recorded.event.experiment_id]
    return state.put_experiment(replace(experiment, deleting=False))


def _trials_deleted(state: State, recorded: Recorded) -> Iterable[Key]:
    for id in recorded.event.trial_ids:
        if id in state.trials:
            yield from state.drop_trial(id)


def _experiment_deleted(state: State, recorded: Recorded) -> Iterable[Key]:
    event: searcher.ExperimentDeleted = recorded.event
    if event.state != "DELETED":
        return
    experiment = state.experiments[event.experiment_id]
    # Logs from before `TrialsDeleted` leave the trials in place.
    for id in list(state.trials_of.ids(experiment.id)):
        yield from state.drop_trial(id)
    yield from state.drop_experiment(experiment.id)


def _trial_created(state: State, recorded: Recorded) -> Iterable[Key]:
    event: searcher.TrialCreated = recorded.event
    fresh = Trial(id=event.trial_id, experiment_id=event.experiment_id)
    yield from state.put_trial(fresh)
    yield from _change_unsettled(state, fresh, 1)


def _validated(state: State, recorded: Recorded) -> Iterable[Key]:
    event: metrics.Validated = recorded.event
    trial_record = state.trials.get(event.trial_id)
    if trial_record is None:
        return
    # A later run that validates at the same steps replaces the earlier result.
    validation = Validation(event.metric, recorded.position)
    yield from state.put_validation(trial_record.id, event.steps_completed, validation)


def _settled(state: State, recorded: Recorded) -> Iterable[Key]:
    event: metrics.Settled = recorded.event
    trial_record = state.trials.get(event.trial_id)
    # It may have ended again between the decision and its place in the log.
    if trial_record is None or event.end not in (0, trial_record.end):
        return
    # Retention ranks checkpoints only, and a trial may have a hundred thousand validations. A script that
    # was lost outside of the cluster may still report the checkpoint of one.
    if not state.experiments[trial_record.experiment_id].unmanaged:
        for steps in list(state.validations_without_checkpoint.ids(trial_record.id)):
            yield from state.drop_validation(trial_record.id, steps)
    yield from state.put_trial(replace(trial_record, settled=True))
    yield from _change_unsettled(state, trial_record, 0 if trial_record.settled else -1)


def _checkpoint_stored(state: State, recorded: Recorded) -> Iterable[Key]:
    event: trial.CheckpointStored = recorded.event
    trial_record = state.trials.get(event.trial_id)
    # The id comes from a script, and a task will use it as a path to delete.
    if event.uuid in state.checkpoints or trial_record is None or not ids.is_token(event.uuid):
        return
    fresh = Checkpoint(
        uuid=event.uuid,
        trial_id=trial_record.id,
        experiment_id=trial_record.experiment_id,
        task_id=event.task_id,
        allocation_id=event.allocation_id,
        at=recorded.at,
        order=recorded.position,
        resources=event.resources,
        metadata=event.metadata,
        steps_completed=event.steps_completed,
    )
    yield from state.put_checkpoint(fresh)
    yield "experiments", trial_record.experiment_id


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
    # The searcher may have forgotten both between this service's decision and its place in the log.
    experiment = state.experiments.get(event.experiment_id)
    if experiment is not None:
        yield from state.put_experiment(
            replace(
                experiment,
                deletions=experiment.deletions + 1,
                sweeping=experiment.sweeping or event.sweep,
            )
        )
    for checkpoint in _present(state, event.losing):
        # Counted at the request, and not at its end: a worker that is lost may never report one.
        deleting = replace(
            checkpoint, going=True, task=event.task_id, tries=checkpoint.tries + 1, reason=event.reason
        )
        yield from state.put_checkpoint(deleting)
    yield "deletions", event.task_id


def _present(state: State, uuids: Iterable[str]) -> Iterable[Checkpoint]:
    """Those of some checkpoints that the searcher's deletion of their trials has not removed."""
    return (state.checkpoints[uuid] for uuid in uuids if uuid in state.checkpoints)


def _allocation_ended(state: State, recorded: Recorded) -> Iterable[Key]:
    event: scheduler.AllocationEnded = recorded.event
    trial_record = state.trials.get(event.trial_id) if event.trial_id is not None else None
    if trial_record is not None and not state.experiments[trial_record.experiment_id].ran:
        yield from state.put_experiment(replace(state.experiments[trial_record.experiment_id], ran=True))
    if event.kind != "CHECKPOINT_GC":
        return
    task_id = ids.task_of(event.allocation_id)
    deletion = state.deletions.get(task_id)
    if deletion is None or deletion.outcome is not None:
        return
    state.deletions[task_id] = replace(deletion, outcome=event.outcome, reason=event.reason)
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
    for checkpoint in _present(state, event.losing):
        # Another task may have been requested in the meantime; until that one is over, the deletion is in
        # progress.
        checkpoint = replace(
            checkpoint, going=checkpoint.going and checkpoint.task != event.task_id, reason=event.reason
        )
        if event.deleted and event.globs is None:
            checkpoint = replace(checkpoint, state="DELETED", resources={})
        elif event.deleted:
            checkpoint = replace(checkpoint, tries=0)
        elif checkpoint.tries >= TRIES:
            checkpoint = replace(checkpoint, state="ERROR")
        yield from state.put_checkpoint(checkpoint)


def _files_listed(state: State, recorded: Recorded) -> Iterable[Key]:
    event: checkpoints.FilesListed = recorded.event
    checkpoint = state.checkpoints.get(event.uuid)
    if checkpoint is None or checkpoint.state == "DELETED":
        return
    if checkpoint.resources and not event.resources:
        # The list of its files stays on record, as clients of Determined expect.
        yield from state.put_checkpoint(replace(checkpoint, state="DELETED"))
        return
    is_partial = any(path not in event.resources for path in checkpoint.resources)
    new_state: CheckpointState = "PARTIALLY_DELETED" if is_partial else checkpoint.state
    yield from state.put_checkpoint(replace(checkpoint, state=new_state, resources=event.resources))


def _metadata_set(state: State, recorded: Recorded) -> Iterable[Key]:
    event: checkpoints.MetadataSet = recorded.event
    checkpoint = state.checkpoints.get(event.uuid)
    if checkpoint is not None:
        yield from state.put_checkpoint(replace(checkpoint, metadata=event.metadata))


def _experiment_moved(state: State, recorded: Recorded) -> Iterable[Key]:
    """Another workspace's quota now counts what it has stored."""
    id = recorded.event.experiment_id
    return state.put_weight(id, state.storage_usage.amount(id)) if state.storage_usage.amount(id) else ()


_FOLDS: dict[type, Callable[[State, Recorded], Iterable[Key]]] = {
    searcher.ExperimentCreated: _experiment_created,
    searcher.ExperimentActivated: _experiment_activated,
    searcher.ExperimentEnded: _experiment_ended,
    searcher.TrialEnded: _trial_ended,
    searcher.ExperimentRevised: _experiment_revised,
    searcher.ExperimentDeleting: _experiment_deleting,
    searcher.TrialsDeleted: _trials_deleted,
    searcher.ExperimentDeleted: _experiment_deleted,
    searcher.TrialCreated: _trial_created,
    metrics.Validated: _validated,
    metrics.Settled: _settled,
    trial.CheckpointStored: _checkpoint_stored,
    checkpoints.DeletionRequested: _deletion_requested,
    checkpoints.DeletionFinished: _deletion_finished,
    checkpoints.ExperimentEmptied: _experiment_emptied,
    checkpoints.FilesListed: _files_listed,
    checkpoints.MetadataSet: _metadata_set,
    checkpoints.ModelSet: registry.model_set,
    checkpoints.ModelRemoved: registry.model_removed,
    checkpoints.VersionSet: registry.version_set,
    checkpoints.VersionRemoved: registry.version_removed,
    checkpoints.CreationKept: fold_result,
    gateway.ExperimentMoved: _experiment_moved,
    scheduler.AllocationEnded: _allocation_ended,
}

evolve = Fold(_FOLDS)
"""Folds one event; returns the keys of the changed records."""
