"""Folds events about experiments."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from det_contracts.envelope import Recorded
from det_contracts.events import gateway, scheduler, searcher
from det_contracts.states import TERMINAL
from det_contracts.states import State as Life
from services.catalogue.domain.indexed_records import drop_experiment, drop_trial, put_experiment, put_trial
from services.catalogue.domain.state import Experiment, State, Submission, Trial
from services.kit.rules import Key

replace = msgspec.structs.replace

SEVERITY: tuple[Life, ...] = (
    "ACTIVE",
    "PAUSED",
    "STOPPING_COMPLETED",
    "STOPPING_CANCELED",
    "STOPPING_KILLED",
    "STOPPING_ERROR",
)
"""States by severity. Stopping states only become more severe (scheduling spec, 8.3)."""


def created(state: State, recorded: Recorded) -> Iterable[Key]:
    """An experiment was created."""
    event: searcher.ExperimentCreated = recorded.event
    id, config = event.experiment_id, event.config
    state.submissions[id] = Submission(
        config=config, original_config=event.original_config, context=event.context
    )
    fresh = Experiment(
        id=id,
        user=event.user,
        name=config["name"],
        description=config.get("description") or "",
        labels=tuple(config.get("labels") or ()),
        pool="" if event.unmanaged else config["resources"].get("resource_pool") or "default",
        metric=config["searcher"].get("metric") or "",
        smaller_is_better=config["searcher"].get("smaller_is_better", True),
        parent_id=event.parent_id,
        project_id=event.project_id,
        unmanaged=event.unmanaged,
        created_at=recorded.at,
        reason=event.reason,
        searcher=str(config["searcher"]["name"]),
        hyperparameters=msgspec.json.encode(config.get("hyperparameters") or {}).decode(),
    )
    yield "submissions", id
    yield from put_experiment(state, fresh)


def state_changed(state: State, recorded: Recorded) -> Iterable[Key]:
    """An experiment changed its state, which also affects the state of its open trials."""
    event = recorded.event
    id = event.experiment_id
    to = _target(event)
    ended_at = recorded.at if to in TERMINAL else None
    changed = replace(state.experiments[id], state=to, reason=event.reason, ended_at=ended_at)
    yield from put_experiment(state, changed)
    # A copy, because storing a trial changes the index that is iterated over.
    for trial_id in list(state.open_trials.ids(id)):
        yield from put_trial(state, with_effective_state(state.trials[trial_id], to, event.reason))


def archived(state: State, recorded: Recorded) -> Iterable[Key]:
    """An experiment was archived or unarchived."""
    event: searcher.ExperimentArchived = recorded.event
    return put_experiment(state, replace(state.experiments[event.experiment_id], archived=event.archived))


def revised(state: State, recorded: Recorded) -> Iterable[Key]:
    """A person changed an experiment."""
    event: searcher.ExperimentRevised = recorded.event
    experiment = state.experiments[event.experiment_id]
    new_values = event.changes
    changed = replace(
        experiment,
        name=new_values.get("name", experiment.name),
        description=new_values.get("description", experiment.description) or "",
        labels=tuple(new_values.get("labels", experiment.labels) or ()),
        notes=new_values.get("notes", experiment.notes) or "",
        # Only differences are kept: the configuration is a record of its own, which is usually paged out.
        changes=experiment.changes
        | {field: value for field, value in new_values.items() if field != "notes"},
    )
    return put_experiment(state, changed)


def job_changed(state: State, recorded: Recorded) -> Iterable[Key]:
    """The scheduler changed a job's share, pool or place in the queue."""
    event: scheduler.JobChanged = recorded.event
    experiment = state.experiments.get(event.experiment_id)
    if experiment is None:
        return ()
    changes = {
        "resources.priority": event.priority,
        "resources.weight": event.weight,
        "resources.max_slots": event.max_slots,
        "resources.resource_pool": event.pool,
    }
    return put_experiment(state, replace(experiment, pool=event.pool, changes=experiment.changes | changes))


def deleting(state: State, recorded: Recorded) -> Iterable[Key]:
    """The deletion of an experiment was requested."""
    event: searcher.ExperimentDeleting = recorded.event
    experiment = state.experiments[event.experiment_id]
    return put_experiment(state, replace(experiment, state="DELETING", reason=event.reason))


def deleted(state: State, recorded: Recorded) -> Iterable[Key]:
    """An experiment was deleted, or its deletion failed."""
    event: searcher.ExperimentDeleted = recorded.event
    experiment = state.experiments[event.experiment_id]
    if event.state != "DELETED":
        yield from put_experiment(state, replace(experiment, state=event.state, reason=event.reason))
        return
    yield from drop_experiment(state, experiment.id)


def trials_deleted(state: State, recorded: Recorded) -> Iterable[Key]:
    """Some trials of an experiment were deleted."""
    for id in recorded.event.trial_ids:
        if id in state.trials:
            yield from drop_trial(state, id)


def _target(event: object) -> Life:
    match event:
        case searcher.ExperimentActivated():
            return "ACTIVE"
        case searcher.ExperimentPaused():
            return "PAUSED"
        case searcher.ExperimentStopping(to=to):
            return to
        case searcher.ExperimentEnded(state=ended):
            return ended
    raise TypeError(f"{event!r} does not move an experiment")


def with_effective_state(trial: Trial, experiment: Life, reason: str) -> Trial:
    """A trial with its effective state. `reason` is the reason for the experiment's state."""
    # How a trial ended is its own affair, and the ends of an experiment are not in `SEVERITY`.
    if trial.own in TERMINAL or experiment in TERMINAL:
        return trial
    effective = max(trial.own, experiment, key=SEVERITY.index)
    if effective == trial.state:
        return trial
    return replace(trial, state=effective, reason=reason)


def project_changed(state: State, recorded: Recorded) -> Iterable[Key]:
    """An experiment was moved to another project."""
    event: gateway.ExperimentMoved = recorded.event
    experiment = state.experiments.get(event.experiment_id)
    if experiment is not None:
        yield from put_experiment(state, replace(experiment, project_id=event.project_id))
