"""The service's rules: once all is known of an ended experiment, superfluous checkpoints are deleted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from det_contracts import ids
from det_contracts.events import checkpoints
from services.checkpoints.domain import TRIES, Checkpoint, Deletion, Experiment, State, Validation
from services.checkpoints.domain.state import (
    DELETING,
    FAILED,
    REGISTERED,
    STORED,
    deletion_status,
    validation_key,
)
from services.checkpoints.retention import Candidate, Keep, kept_uuids

PRESENT = ("COMPLETED", "PARTIALLY_DELETED")
# The task gets all of their names in one message; a thousand UUIDs are 40 KB.
AT_ONCE = 1000
"""Maximum number of checkpoints that one task deletes."""
TASKS_AT_ONCE = 4
"""Maximum number of tasks requested at once for an experiment that is being deleted."""


def react(state: State, key: tuple[str, Any]) -> Sequence[Any]:
    """Return the events that a record calls for; empty if there is nothing to do."""
    kind, id = key
    if kind == "experiments" and id in state.experiments:
        experiment = state.experiments[id]
        return (
            _empty_experiment(state, experiment)
            if experiment.deleting
            else _apply_retention(state, experiment)
        )
    if kind == "deletions" and id in state.deletions:
        return _finish_deletion(state.deletions[id])
    return ()


def _apply_retention(state: State, experiment: Experiment) -> Sequence[Any]:
    if not experiment.retains or not experiment.ended:
        return ()
    # A validation that is not judged yet may turn out to be the best (decision 3).
    if experiment.unsettled:
        return ()
    keep = experiment.keep
    reason = (
        f"experiment {experiment.id} has ended; kept are its best {keep.experiment_best}, and of "
        f"each trial the best {keep.trial_best} and the latest {keep.trial_latest}"
    )
    return deletion_requests(experiment, superfluous(state, experiment, keep), reason)


def superfluous(state: State, experiment: Experiment, keep: Keep) -> list[str]:
    """The checkpoints of an experiment that are deleted under a retention setting."""
    present = [
        c
        for c in state.checkpoints_of_experiment(experiment.id, STORED, REGISTERED)
        if c.state in PRESENT and not c.going
    ]
    stay = kept_uuids(
        [_candidate(state, c) for c in present],
        keep,
        smaller_is_better=experiment.smaller_is_better,
        # Versions of models, and what other trials started from: they need it again when they restart.
        protected={c.uuid for c in present if c.versions or state.started_from.first(c.uuid)},
    )
    return [c.uuid for c in present if c.uuid not in stay]


def _empty_experiment(state: State, experiment: Experiment) -> Sequence[Any]:
    """Delete all checkpoints of an experiment.

    States the result once none is left or some cannot be deleted.
    """
    # A checkpoint that a task is already deleting can no longer be kept for another experiment.
    needed = _registered_reason(state, experiment) or _dependent_reason(state, experiment)
    if needed:
        return [checkpoints.ExperimentEmptied(experiment.id, False, needed)]
    present = [
        c.uuid
        for c in islice(state.checkpoints_of_experiment(experiment.id, STORED), TASKS_AT_ONCE * AT_ONCE)
    ]
    # Tries are counted: a storage that is gone for good must not keep the deletion waiting for ever.
    sweep = experiment.ran and not experiment.swept and not experiment.sweeping and experiment.sweeps < TRIES
    if present or sweep:
        reason = f"experiment {experiment.id} is being deleted"
        return deletion_requests(experiment, present, reason, sweep=sweep)
    if experiment.sweeping or state.checkpoints_by_status.first(experiment.id, DELETING):
        return ()
    stored = next(state.checkpoints_of_experiment(experiment.id), None) is not None
    if experiment.ran and not experiment.swept and not stored:
        # Often its storage is unreachable, which is why nothing was ever stored there.
        reason = "it never had a checkpoint; event files of its trials may remain, as the storage refused"
        return [checkpoints.ExperimentEmptied(experiment.id, True, reason)]
    if experiment.ran and not experiment.swept:
        reason = f"the event files of its trials could not be deleted in {TRIES} tries"
        return [checkpoints.ExperimentEmptied(experiment.id, False, reason)]
    failed = next(state.checkpoints_of_experiment(experiment.id, FAILED), None)
    if failed is not None:
        count = state.checkpoints_by_status.count(experiment.id, FAILED)
        reason = f"{count} checkpoints could not be deleted, {failed.uuid}: {failed.reason}"
        return [checkpoints.ExperimentEmptied(experiment.id, False, reason)]
    return [checkpoints.ExperimentEmptied(experiment.id, True, "none of its checkpoints is left")]


def _registered_reason(state: State, experiment: Experiment) -> str:
    checkpoint = next(state.checkpoints_of_experiment(experiment.id, REGISTERED), None)
    return (
        f"its checkpoints are registered as model versions, such as {checkpoint.uuid}" if checkpoint else ""
    )


def _dependent_reason(state: State, experiment: Experiment) -> str:
    for id in state.dependents.ids(experiment.id):
        other = state.experiments[id]
        source = state.checkpoints[other.source or ""]
        if id != experiment.id and not other.ended and deletion_status(source) == STORED:
            return f"experiment {other.id}, which has not ended, starts from its checkpoint {other.source}"
    return ""


def deletion_requests(
    experiment: Experiment,
    uuids: Sequence[str],
    reason: str,
    globs: tuple[str, ...] | None = None,
    sweep: bool = False,
) -> list[checkpoints.DeletionRequested]:
    """Tasks that delete checkpoints of an experiment, or some of their files.

    With `sweep`, the first task also deletes other files of the experiment. It then exists even without
    checkpoints.
    """
    task_batches = list(_task_batches(tuple(uuids))) or [()] * sweep
    return [
        checkpoints.DeletionRequested(
            task_id=ids.deletion_task_id(experiment.id, experiment.deletions + 1 + index),
            experiment_id=experiment.id,
            uuids=some,
            reason=reason,
            pool=experiment.pool,
            globs=globs,
            sweep=sweep and index == 0,
        )
        for index, some in enumerate(task_batches)
    ]


def _task_batches(uuids: tuple[str, ...]) -> Iterable[tuple[str, ...]]:
    return (uuids[at : at + AT_ONCE] for at in range(0, len(uuids), AT_ONCE))


def validation_of(state: State, checkpoint: Checkpoint) -> Validation | None:
    """The trial's validation at the checkpoint's steps."""
    return state.validations.get(validation_key(checkpoint.trial_id, checkpoint.steps_completed))


def _candidate(state: State, checkpoint: Checkpoint) -> Candidate:
    validation = validation_of(state, checkpoint)
    return Candidate(
        uuid=checkpoint.uuid,
        trial_id=checkpoint.trial_id,
        steps=checkpoint.steps_completed,
        stored=checkpoint.order,
        metric=validation.metric if validation else None,
        validated=validation.number if validation else 0,
    )


def _finish_deletion(deletion: Deletion) -> Sequence[Any]:
    if deletion.outcome is None:
        return ()
    deleted = deletion.outcome == "succeeded"
    return [
        checkpoints.DeletionFinished(
            task_id=deletion.task_id,
            experiment_id=deletion.experiment_id,
            uuids=deletion.uuids,
            deleted=deleted,
            globs=deletion.globs,
            sweep=deletion.sweep,
            reason=deletion.why if deleted else f"not deleted: {deletion.reason}",
        )
    ]
