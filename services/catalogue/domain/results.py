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
    known = state.trials.get(event.trial_id)
    if known is None:
        return
    # Before the new validation is stored: afterwards it would be among the latest itself, and nothing would
    # look superseded.
    yield from _drop_superseded(state, known, event)
    # Looked up again, since the line above has replaced the record.
    known = replace(state.trials[known.id], steps=max(known.steps, event.steps_completed))
    yield from put_trial(state, known)
    # A validation without the searcher's metric moves the trial's steps forward and ranks nothing.
    if event.metric is None:
        return
    found = Validation(known.id, event.run, event.steps_completed, event.metric, event.reported_at)
    yield from put_validation(state, found)
    yield from _update_best(state, known, found)
    yield from _set_checkpoint_metrics(state, known, found)


def _drop_superseded(state: State, known: Trial, event: metrics.Validated) -> Iterable[Key]:
    """Drop validations that a new run overtakes: those of older runs from its first step on.

    REST spec, section 4, rule 2.
    """
    if known.latest is None or event.run <= known.latest.run or event.steps_completed > known.latest.steps:
        return
    for steps in list(_superseded_steps(state, known, event)):
        yield from drop_validation(state, state.validations[validation_key(known.id, steps)])
    best, latest = (
        state.ranked_validations.first(known.id),
        next(state.validation_steps.descending(known.id), None),
    )
    changed = replace(
        known,
        best=state.validations[validation_key(known.id, best[-1])] if best else None,
        latest=state.validations[validation_key(known.id, latest[-1])] if latest else None,
    )
    yield from put_trial(state, changed)
    experiment = state.experiments[known.experiment_id]
    if experiment.best_trial == known.id:
        yield from _update_best_trial(state, experiment)


def _superseded_steps(state: State, known: Trial, event: metrics.Validated) -> Iterable[int]:
    """The steps of older runs' validations, from the event's step on."""
    entry = state.validation_steps.first(known.id)
    while entry is not None and entry[1] < event.run:
        yield from state.validation_steps.ids(known.id, entry[1], after=event.steps_completed - 1)
        entry = next(state.validation_steps.scan(known.id, after=entry[1]), None)


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


def _update_best(state: State, known: Trial, found: Validation) -> Iterable[Key]:
    experiment = state.experiments[known.experiment_id]
    score = signed_metric(experiment, found.metric)
    # Of equals the earlier one stays the best: clients expect the best checkpoint not to change without a
    # reason.
    if known.best is None or score < signed_metric(experiment, known.best.metric):
        known = replace(known, best=found)
    yield from put_trial(state, replace(known, latest=found))
    if experiment.best_metric is None or score < signed_metric(experiment, experiment.best_metric):
        yield from put_experiment(state, replace(experiment, best_trial=known.id, best_metric=found.metric))


def _set_checkpoint_metrics(state: State, known: Trial, found: Validation) -> Iterable[Key]:
    for uuid in state.checkpoints_at.ids(known.id, found.steps):
        yield from put_checkpoint(state, replace(state.checkpoints[uuid], metric=found.metric))


def checkpoint_stored(state: State, recorded: Recorded) -> Iterable[Key]:
    """A checkpoint was stored completely. The first report of its id counts."""
    event: trial.CheckpointStored = recorded.event
    known = state.trials.get(event.trial_id)
    # Scripts may send a report again after a lost answer, or with other contents; totals must count it once.
    if known is None or event.uuid in state.checkpoints:
        return
    validation = state.validations.get(validation_key(known.id, event.steps_completed))
    fresh = Checkpoint(
        uuid=event.uuid,
        trial_id=known.id,
        experiment_id=known.experiment_id,
        task_id=event.task_id,
        allocation_id=event.allocation_id,
        at=recorded.at,
        number=known.stored + 1,
        steps=event.steps_completed,
        resources=event.resources,
        metadata=event.metadata,
        metric=validation.metric if validation else None,
    )
    yield from put_checkpoint(state, fresh)
    known = replace(known, steps=max(known.steps, event.steps_completed), stored=fresh.number)
    yield from _add_to_totals(state, known, 1, sum(event.resources.values()))


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
        known = state.checkpoints.get(uuid)
        if known is None:
            continue
        # A list of files may come before the end of the deletion; then the totals are already without this
        # checkpoint.
        if known.state == "DELETED":
            yield from put_checkpoint(state, replace(known, going=False))
            continue
        # A deletion by patterns says nothing about the whole checkpoint; `FilesListed` says what is left of
        # it.
        if not event.deleted or event.globs is not None:
            yield from put_checkpoint(state, replace(known, going=False))
            continue
        yield from put_checkpoint(state, replace(known, going=False, state="DELETED", resources={}))
        yield from _add_to_totals(state, state.trials[known.trial_id], -1, -sum(known.resources.values()))


def metadata_set(state: State, recorded: Recorded) -> Iterable[Key]:
    """The metadata of a checkpoint was replaced."""
    event: checkpoints.MetadataSet = recorded.event
    known = state.checkpoints.get(event.uuid)
    if known is not None:
        yield from put_checkpoint(state, replace(known, metadata=event.metadata))


def files_listed(state: State, recorded: Recorded) -> Iterable[Key]:
    """The remaining files of a checkpoint were listed, after some were deleted."""
    event: checkpoints.FilesListed = recorded.event
    known = state.checkpoints.get(event.uuid)
    if known is None or known.state == "DELETED":
        return
    # A checkpoint that never had files (only metadata) is not deleted by an empty list.
    if known.resources and not event.resources:
        yield from put_checkpoint(state, replace(known, state="DELETED"))
        yield from _add_to_totals(state, state.trials[known.trial_id], -1, -sum(known.resources.values()))
        return
    gone = any(path not in event.resources for path in known.resources)
    new_state: CheckpointState = "PARTIALLY_DELETED" if gone else known.state
    yield from put_checkpoint(state, replace(known, state=new_state, resources=event.resources))
    change = sum(event.resources.values()) - sum(known.resources.values())
    yield from _add_to_totals(state, state.trials[known.trial_id], 0, change)


def _add_to_totals(state: State, known: Trial, count: int, size_bytes: int) -> Iterable[Key]:
    """Add a checkpoint to the totals of its trial and experiment, or subtract it."""
    changed = replace(
        known,
        checkpoints=known.checkpoints + count,
        checkpoint_bytes=known.checkpoint_bytes + size_bytes,
    )
    yield from put_trial(state, changed)
    experiment = state.experiments[known.experiment_id]
    updated = replace(
        experiment,
        checkpoints=experiment.checkpoints + count,
        checkpoint_bytes=experiment.checkpoint_bytes + size_bytes,
    )
    yield from put_experiment(state, updated)
