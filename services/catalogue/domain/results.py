"""Folds events about validations and checkpoints, including the ranking of trials."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from det_contracts.envelope import Recorded
from det_contracts.events import checkpoints, gateway, metrics, trial
from services.catalogue.domain.allocations import deletion_opened
from services.catalogue.domain.indexed_records import (
    drop_validation,
    put_checkpoint,
    put_experiment,
    put_source,
    put_trial,
    put_validation,
)
from services.catalogue.domain.indexes import signed_metric
from services.catalogue.domain.state import (
    Checkpoint,
    CheckpointState,
    Experiment,
    State,
    Trial,
    TrialSource,
    Validation,
    validation_key,
)
from services.kit.rules import Key

replace = msgspec.structs.replace


def source_reported(state: State, recorded: Recorded) -> Iterable[Key]:
    """A trial uses a checkpoint. The trial may have been deleted meanwhile."""
    event: gateway.TrialSourceReported = recorded.event
    if event.trial_id in state.trials:
        yield from put_source(
            state,
            TrialSource(
                trial_id=event.trial_id,
                checkpoint=event.checkpoint,
                kind=event.kind,
                model_id=event.model_id,
                version=event.version,
            ),
        )


def validated(state: State, recorded: Recorded) -> Iterable[Key]:
    """A validation was accepted."""
    event: metrics.Validated = recorded.event
    trial_record = state.trials.get(event.trial_id)
    if trial_record is None:
        return
    # Before the new validation is stored: afterwards it would be among the latest itself, and nothing would
    # look superseded.
    yield from _drop_superseded(state, trial_record, event)
    # Looked up again, since the line above has replaced the record.
    trial_record = replace(
        state.trials[trial_record.id], steps=max(trial_record.steps, event.steps_completed)
    )
    yield from put_trial(state, trial_record)
    # A validation without the searcher's metric moves the trial's steps forward and ranks nothing.
    if event.metric is None:
        return
    validation = Validation(
        trial_record.id, event.run, event.steps_completed, event.metric, event.reported_at
    )
    yield from put_validation(state, validation)
    yield from _update_best(state, trial_record, validation)
    yield from _set_checkpoint_metrics(state, trial_record, validation)


def _drop_superseded(state: State, trial_record: Trial, event: metrics.Validated) -> Iterable[Key]:
    """Drop validations that a new run overtakes: those of older runs from its first step on.

    REST spec, section 4, rule 2.
    """
    if (
        trial_record.latest is None
        or event.run <= trial_record.latest.run
        or event.steps_completed > trial_record.latest.steps
    ):
        return
    for steps in list(_superseded_steps(state, trial_record, event)):
        yield from drop_validation(state, state.validations[validation_key(trial_record.id, steps)])
    best, latest = (
        state.ranked_validations.first(trial_record.id),
        next(state.validation_steps.descending(trial_record.id), None),
    )
    changed = replace(
        trial_record,
        best=state.validations[validation_key(trial_record.id, best[-1])] if best else None,
        latest=state.validations[validation_key(trial_record.id, latest[-1])] if latest else None,
    )
    yield from put_trial(state, changed)
    experiment = state.experiments[trial_record.experiment_id]
    if experiment.best_trial == trial_record.id:
        yield from _update_best_trial(state, experiment)


def _superseded_steps(state: State, trial_record: Trial, event: metrics.Validated) -> Iterable[int]:
    """The steps of older runs' validations, from the event's step on."""
    entry = state.validation_steps.first(trial_record.id)
    while entry is not None and entry[1] < event.run:
        yield from state.validation_steps.ids(trial_record.id, entry[1], after=event.steps_completed - 1)
        entry = next(state.validation_steps.scan(trial_record.id, after=entry[1]), None)


def _update_best_trial(state: State, experiment: Experiment) -> Iterable[Key]:
    """Determine the best trial of an experiment, the oldest among equals."""
    winner = state.ranked_trials.first(experiment.id)
    best = state.trials[winner[-1]].best if winner else None
    return put_experiment(
        state,
        replace(
            experiment,
            best_trial=best.trial_id if best else None,
            best_metric=best.metric if best else None,
        ),
    )


def _update_best(state: State, trial_record: Trial, validation: Validation) -> Iterable[Key]:
    experiment = state.experiments[trial_record.experiment_id]
    score = signed_metric(experiment, validation.metric)
    # Of equals the earlier one stays the best: clients expect the best checkpoint not to change without a
    # reason.
    if trial_record.best is None or score < signed_metric(experiment, trial_record.best.metric):
        trial_record = replace(trial_record, best=validation)
    yield from put_trial(state, replace(trial_record, latest=validation))
    if experiment.best_metric is None or score < signed_metric(experiment, experiment.best_metric):
        yield from put_experiment(
            state, replace(experiment, best_trial=trial_record.id, best_metric=validation.metric)
        )


def _set_checkpoint_metrics(state: State, trial_record: Trial, validation: Validation) -> Iterable[Key]:
    for uuid in state.checkpoints_at.ids(trial_record.id, validation.steps):
        yield from put_checkpoint(state, replace(state.checkpoints[uuid], metric=validation.metric))


def checkpoint_stored(state: State, recorded: Recorded) -> Iterable[Key]:
    """A checkpoint was stored completely. The first report of its id counts."""
    event: trial.CheckpointStored = recorded.event
    trial_record = state.trials.get(event.trial_id)
    # Scripts may send a report again after a lost answer, or with other contents; totals must count it once.
    if trial_record is None or event.uuid in state.checkpoints:
        return
    validation = state.validations.get(validation_key(trial_record.id, event.steps_completed))
    fresh = Checkpoint(
        uuid=event.uuid,
        trial_id=trial_record.id,
        experiment_id=trial_record.experiment_id,
        task_id=event.task_id,
        allocation_id=event.allocation_id,
        at=recorded.at,
        number=trial_record.stored + 1,
        steps=event.steps_completed,
        resources=event.resources,
        metadata=event.metadata,
        metric=validation.metric if validation else None,
    )
    yield from put_checkpoint(state, fresh)
    trial_record = replace(
        trial_record, steps=max(trial_record.steps, event.steps_completed), stored=fresh.number
    )
    yield from _add_to_totals(state, trial_record, 1, sum(event.resources.values()))


def deletion_requested(state: State, recorded: Recorded) -> Iterable[Key]:
    """The deletion of checkpoints was requested."""
    event: checkpoints.DeletionRequested = recorded.event
    for uuid in event.losing:
        if uuid in state.checkpoints:
            yield from put_checkpoint(state, replace(state.checkpoints[uuid], going=True))
    yield from deletion_opened(state, recorded)


def deletion_finished(state: State, recorded: Recorded) -> Iterable[Key]:
    """A deletion task ended. Checkpoints that it could not delete stay."""
    event: checkpoints.DeletionFinished = recorded.event
    for uuid in event.losing:
        checkpoint = state.checkpoints.get(uuid)
        if checkpoint is None:
            continue
        # A list of files may come before the end of the deletion; then the totals are already without this
        # checkpoint.
        if checkpoint.state == "DELETED":
            yield from put_checkpoint(state, replace(checkpoint, going=False))
            continue
        # A deletion by patterns says nothing about the whole checkpoint; `FilesListed` says what is left of
        # it.
        if not event.deleted or event.globs is not None:
            yield from put_checkpoint(state, replace(checkpoint, going=False))
            continue
        yield from put_checkpoint(state, replace(checkpoint, going=False, state="DELETED", resources={}))
        yield from _add_to_totals(
            state, state.trials[checkpoint.trial_id], -1, -sum(checkpoint.resources.values())
        )


def metadata_set(state: State, recorded: Recorded) -> Iterable[Key]:
    """The metadata of a checkpoint was replaced."""
    event: checkpoints.MetadataSet = recorded.event
    checkpoint = state.checkpoints.get(event.uuid)
    if checkpoint is not None:
        yield from put_checkpoint(state, replace(checkpoint, metadata=event.metadata))


def files_listed(state: State, recorded: Recorded) -> Iterable[Key]:
    """The remaining files of a checkpoint were listed, after some were deleted."""
    event: checkpoints.FilesListed = recorded.event
    checkpoint = state.checkpoints.get(event.uuid)
    if checkpoint is None or checkpoint.state == "DELETED":
        return
    # A checkpoint that never had files (only metadata) is not deleted by an empty list.
    if checkpoint.resources and not event.resources:
        yield from put_checkpoint(state, replace(checkpoint, state="DELETED"))
        yield from _add_to_totals(
            state, state.trials[checkpoint.trial_id], -1, -sum(checkpoint.resources.values())
        )
        return
    gone = any(path not in event.resources for path in checkpoint.resources)
    new_state: CheckpointState = "PARTIALLY_DELETED" if gone else checkpoint.state
    yield from put_checkpoint(state, replace(checkpoint, state=new_state, resources=event.resources))
    change = sum(event.resources.values()) - sum(checkpoint.resources.values())
    yield from _add_to_totals(state, state.trials[checkpoint.trial_id], 0, change)


def _add_to_totals(state: State, trial_record: Trial, count: int, size_bytes: int) -> Iterable[Key]:
    """Add a checkpoint to the totals of its trial and experiment, or subtract it."""
    changed = replace(
        trial_record,
        checkpoints=trial_record.checkpoints + count,
        checkpoint_bytes=trial_record.checkpoint_bytes + size_bytes,
    )
    yield from put_trial(state, changed)
    experiment = state.experiments[trial_record.experiment_id]
    updated = replace(
        experiment,
        checkpoints=experiment.checkpoints + count,
        checkpoint_bytes=experiment.checkpoint_bytes + size_bytes,
    )
    yield from put_experiment(state, updated)
