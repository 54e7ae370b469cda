"""The service's rules: once an experiment is over and all is known of it, what need not stay goes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from det_contracts import ids
from det_contracts.events import checkpoints
from services.checkpoints.domain import TRIES, Checkpoint, Deletion, Experiment, State, Validation
from services.checkpoints.retention import Candidate, Keep, kept

THERE = ("COMPLETED", "PARTIALLY_DELETED")
AT_ONCE = 1000
"""Checkpoints that one task deletes."""


def react(state: State, key: tuple[str, Any]) -> Sequence[Any]:
    """Events that one record calls for; none for a record at rest."""
    kind, id = key
    if kind == "experiments" and id in state.experiments:
        known = state.experiments[id]
        return _empty(state, known) if known.deleting else _experiment(state, known)
    if kind == "deletions" and id in state.deletions:
        return _deletion(state.deletions[id])
    return ()


def _experiment(state: State, experiment: Experiment) -> Sequence[Any]:
    if not experiment.retains or not experiment.ended:
        return ()
    if not all(state.trials[id].settled for id in experiment.trials):
        return ()
    keep = experiment.keep
    reason = (
        f"experiment {experiment.id} has ended; kept are its best {keep.experiment_best}, and of "
        f"each trial the best {keep.trial_best} and the latest {keep.trial_latest}"
    )
    return deletions(experiment, superfluous(state, experiment, keep), reason)


def superfluous(state: State, experiment: Experiment, keep: Keep) -> list[str]:
    """Checkpoints of an experiment that go when it keeps that many."""
    present = [c for c in stored_by(state, experiment.trials) if c.state in THERE and not c.going]
    started_from = {e.source for e in state.experiments.values() if e.source}
    stay = kept(
        [_candidate(state, c) for c in present],
        keep,
        smaller_is_better=experiment.smaller_is_better,
        protected=started_from | {c.uuid for c in present if c.versions},
    )
    return [c.uuid for c in present if c.uuid not in stay]


def _empty(state: State, experiment: Experiment) -> Sequence[Any]:
    """Delete every checkpoint of an experiment that shall go; say so when none is left or some cannot."""
    stored = list(stored_by(state, experiment.trials))
    present = [c.uuid for c in stored if c.state in THERE and not c.going]
    # What a task is already deleting cannot be kept for anybody.
    needed = _registered(stored) or _needed_by_others(state, experiment, set(present))
    if needed:
        return [checkpoints.ExperimentEmptied(experiment.id, False, needed)]
    sweep = experiment.ran and not experiment.swept and not experiment.sweeping and experiment.sweeps < TRIES
    if present or sweep:
        reason = f"experiment {experiment.id} is being deleted"
        return deletions(experiment, present, reason, sweep=sweep)
    if experiment.sweeping or any(c.going for c in stored):
        return ()
    if experiment.ran and not experiment.swept:
        reason = f"the event files of its trials could not be deleted in {TRIES} tries"
        return [checkpoints.ExperimentEmptied(experiment.id, False, reason)]
    failed = [c for c in stored if c.state == "ERROR"]
    if failed:
        reason = f"{len(failed)} checkpoints could not be deleted, {failed[0].uuid}: {failed[0].reason}"
        return [checkpoints.ExperimentEmptied(experiment.id, False, reason)]
    return [checkpoints.ExperimentEmptied(experiment.id, True, "none of its checkpoints is left")]


def _registered(present: Iterable[Checkpoint]) -> str:
    found = next((c.uuid for c in present if c.versions), None)
    return f"its checkpoints are registered as model versions, such as {found}" if found else ""


def _needed_by_others(state: State, experiment: Experiment, present: set[str]) -> str:
    for other in state.experiments.values():
        if other.id != experiment.id and not other.ended and other.source in present:
            return f"experiment {other.id}, which has not ended, starts from its checkpoint {other.source}"
    return ""


def deletions(
    experiment: Experiment,
    uuids: Sequence[str],
    reason: str,
    globs: tuple[str, ...] | None = None,
    sweep: bool = False,
) -> list[checkpoints.DeletionRequested]:
    """Tasks that delete checkpoints of an experiment, or files of them.

    With `sweep`, the first deletes what is no checkpoint too; there is one even without checkpoints.
    """
    portions = list(_portions(tuple(uuids))) or [()] * sweep
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
        for index, some in enumerate(portions)
    ]


def _portions(uuids: tuple[str, ...]) -> Iterable[tuple[str, ...]]:
    return (uuids[at : at + AT_ONCE] for at in range(0, len(uuids), AT_ONCE))


def stored_by(state: State, trial_ids: Iterable[int]) -> Iterable[Checkpoint]:
    """All checkpoints of trials, whatever became of them."""
    return (state.checkpoints[uuid] for id in trial_ids for uuid in state.trials[id].stored)


def validation_of(state: State, checkpoint: Checkpoint) -> Validation | None:
    """The trial's validation at the steps of the checkpoint."""
    return state.trials[checkpoint.trial_id].validations.get(checkpoint.steps_completed)


def _candidate(state: State, checkpoint: Checkpoint) -> Candidate:
    found = validation_of(state, checkpoint)
    return Candidate(
        uuid=checkpoint.uuid,
        trial_id=checkpoint.trial_id,
        steps=checkpoint.steps_completed,
        stored=checkpoint.order,
        metric=found.metric if found else None,
        validated=found.number if found else 0,
    )


def _deletion(deletion: Deletion) -> Sequence[Any]:
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
