"""How each event changes the searcher's state.

The search method runs inside the fold: a completed operation, an early exit or the end of a trial is a step
of the method, and the operations it requests are written into trials as not yet announced. `react` announces
them. So the search state at a position depends on the log alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from det_contracts.events import checkpoints, gateway, scheduler, searcher, trial
from det_contracts.expconf.length import Length
from det_contracts.states import TERMINAL
from det_contracts.states import State as Life
from services.kit.folds import Fold, FoldOne, of_events
from services.kit.idempotency import fold_result
from services.kit.pool_bindings import pool_bound
from services.searcher.domain import jobs, unmanaged
from services.searcher.domain.custom import apply_post, is_applicable
from services.searcher.domain.state import Exit, Experiment, Named, State, Timer, Totals, Trial
from services.searcher.domain.steps import advance, apply_operations, open_trial, trial_of_request
from services.searcher.domain.unmanaged import is_lost
from services.searcher.methods import (
    Create,
    TrialClosed,
    TrialExitedEarly,
    TrialProgress,
    ValidationCompleted,
    start,
)
from services.searcher.methods import TrialCreated as MethodTrialCreated

Key = tuple[str, Any]
replace = msgspec.structs.replace
GIVING_UP_REASONS = (
    "EXITED_REASON_INVALID_HP",
    "EXITED_REASON_INIT_INVALID_HP",
    "INVALID_HP",
    "INIT_INVALID_HP",
)
"""Reported reasons after which a run must exit."""
EXIT_GRACE_S = 10.0
"""How long it may take to exit (scheduling spec, 8.3), in seconds."""
CHECKPOINTS_REMEMBERED = 8
"""Per trial. A report comes again at once, or after those of a few later checkpoints."""


def _experiment_created(state: State, event: searcher.ExperimentCreated) -> Iterable[Key]:
    resources = event.config["resources"]
    id = event.experiment_id
    created = Experiment(
        id=id,
        user=event.user,
        slots=resources["slots_per_trial"],
        pool=resources["resource_pool"] or "default",
        priority=resources.get("priority") or 42,
        max_restarts=event.config["max_restarts"],
        source_checkpoint=event.source_checkpoint,
        unmanaged=event.unmanaged,
        length=_length(event.config["searcher"]) if event.unmanaged else 0,
        request_key=event.request_key,
        reason=event.reason,
    )
    yield from state.put_experiment(created)
    # The last number given, and not a count: the number of a deleted experiment is never given again.
    state.totals["all"] = replace(state.totals.get("all", Totals()), experiments=id)
    if event.request_key:
        state.request_keys[event.request_key] = Named(id)
    yield "totals", "all"
    if event.request_key:
        yield "request_keys", event.request_key
    if not event.unmanaged:
        seed = event.config["reproducibility"]["experiment_seed"]
        search_config = event.config["searcher"], event.config["hyperparameters"]
        # The version is in the event: a search continues as it began, whatever a later release decides.
        state.searches[id], operations = start(*search_config, seed, event.method_version)
        yield from apply_operations(state, id, operations)


def _length(searcher_config: dict[str, Any]) -> int:
    length = searcher_config.get("max_length")
    return 0 if length is None else Length.of(length).count


def _state_changed(to: Life | None = None) -> Callable[[State, Any], Iterable[Key]]:
    def fold(state: State, event: Any) -> Iterable[Key]:
        # `ExperimentStopping` names its state `to`, and `ExperimentEnded` names it `state`.
        target = to or getattr(event, "to", None) or event.state
        experiment = state.experiments[event.experiment_id]
        yield from state.put_experiment(replace(experiment, state=target, reason=event.reason))
        yield from state.review_trials(experiment.id)

    return fold


def _operations_posted(state: State, event: searcher.OperationsPosted) -> Iterable[Key]:
    id = event.experiment_id
    # Again, although the command has checked them: trials may have ended between the command and this
    # position.
    applicable_operations = [
        operation for operation in event.operations if is_applicable(state, id, operation)
    ]
    state.searches[id], operations = apply_post(state.searches[id], applicable_operations, event.triggered_by)
    return apply_operations(state, id, operations)


def _trial_requested(state: State, event: searcher.TrialRequested) -> Iterable[Key]:
    experiment = state.experiments[event.experiment_id]
    yield from open_trial(state, experiment.id, Create(event.request_id, 0, event.hparams))
    if experiment.length:
        fresh = trial_of_request(state, experiment.id, event.request_id)
        yield from state.put_trial(replace(fresh, seq=1, length=experiment.length, complete=False))


def _kill_forced(state: State, event: searcher.ExperimentKillForced) -> Iterable[Key]:
    experiment = state.experiments[event.experiment_id]
    yield from state.put_experiment(replace(experiment, forced=True))
    yield from state.review_trials(experiment.id)


def _experiment_archived(state: State, event: searcher.ExperimentArchived) -> Iterable[Key]:
    return state.put_experiment(replace(state.experiments[event.experiment_id], archived=event.archived))


def _experiment_deleting(state: State, event: searcher.ExperimentDeleting) -> Iterable[Key]:
    experiment = state.experiments[event.experiment_id]
    return state.put_experiment(replace(experiment, state="DELETING", reason=event.reason, emptied=None))


def _experiment_emptied(state: State, event: checkpoints.ExperimentEmptied) -> Iterable[Key]:
    experiment = state.experiments.get(event.experiment_id)
    # A deletion that failed, and was asked for again, may be answered twice.
    if experiment is None or experiment.state != "DELETING":
        return ()
    return state.put_experiment(replace(experiment, emptied=event.emptied, reason=event.reason))


def _trials_deleted(state: State, event: searcher.TrialsDeleted) -> Iterable[Key]:
    # So that `react` asks for the next portion.
    yield "experiments", event.experiment_id
    for trial_id in event.trial_ids:
        yield from state.drop_trial(trial_id)


def _experiment_deleted(state: State, event: searcher.ExperimentDeleted) -> Iterable[Key]:
    experiment = state.experiments[event.experiment_id]
    if event.state != "DELETED":
        yield from state.put_experiment(replace(experiment, state=event.state, reason=event.reason))
        return
    state.searches.pop(experiment.id, None)
    yield "searches", experiment.id
    named = state.request_keys.get(experiment.request_key)
    if named is not None and named.id == experiment.id:
        # A repeated request with this key needs an experiment that exists.
        del state.request_keys[experiment.request_key]
        yield "request_keys", experiment.request_key
    # Old logs list all trials here.
    for trial_id in event.trial_ids:
        yield from state.drop_trial(trial_id)
    yield from state.drop_experiment(experiment.id)


def _trial_created(state: State, event: searcher.TrialCreated) -> Iterable[Key]:
    stored_trial = state.trials[event.trial_id]
    if stored_trial.request_id != event.request_id or stored_trial.seed != event.seed:
        raise ValueError(f"trial {event.trial_id} was not created as the search method now says")
    yield from state.put_trial(replace(stored_trial, announced=True, hparams=event.hparams))
    # With the hyperparameters of the event, which a method may not propose again (decision 7).
    yield from advance(state, event.experiment_id, MethodTrialCreated(event.request_id, event.hparams))


def _operation_set(state: State, event: searcher.OperationSet) -> Iterable[Key]:
    stored_trial = state.trials[event.trial_id]
    # The method may be ahead of the log, with an operation that is not announced yet, but never behind it.
    if stored_trial.seq < event.seq or (
        stored_trial.seq == event.seq and stored_trial.length != event.length
    ):
        raise ValueError(f"operation {event.seq} of trial {event.trial_id} differs from what the search says")
    return state.put_trial(replace(stored_trial, announced_seq=event.seq))


def _trial_idled(state: State, event: searcher.TrialIdled) -> Iterable[Key]:
    return state.put_trial(replace(state.trials[event.trial_id], idled_seq=event.seq))


def _run_requested(state: State, event: searcher.RunRequested) -> Iterable[Key]:
    stored_trial = state.trials[event.trial_id]
    return state.put_trial(
        replace(
            stored_trial,
            # What the previous run said about itself says nothing about this one.
            run=event.run,
            allocation_id=event.allocation_id,
            stop_sent=0,
            acknowledged=False,
            made_progress=False,
            early=None,
            overdue=False,
            exit=None,
        ),
    )


def _stop_requested(state: State, event: searcher.StopRequested) -> Iterable[Key]:
    return state.put_trial(replace(state.trials[event.trial_id], stop_sent=2 if event.kill else 1))


def _run_ended(state: State, event: searcher.RunEnded) -> Iterable[Key]:
    return state.put_trial(replace(state.trials[event.trial_id], exit=None, restarts=event.restarts))


def _trial_stopping(state: State, event: searcher.TrialStopping) -> Iterable[Key]:
    return state.put_trial(replace(state.trials[event.trial_id], state=event.to, reason=event.reason))


def _trial_ended(state: State, event: searcher.TrialEnded) -> Iterable[Key]:
    stored_trial = state.trials[event.trial_id]
    is_unmanaged = state.experiments[stored_trial.experiment_id].unmanaged
    ended_trial = replace(
        stored_trial,
        state=event.state,
        # A script that runs elsewhere may run again and answer then.
        complete=stored_trial.complete if is_unmanaged else True,
        closed=True,
        exit=None,
        allocation_id=None,
        restarts=event.restarts,
        # A lost run that reports how it ended is no longer lost.
        overdue=stored_trial.overdue and stored_trial.state not in TERMINAL,
        heard=False,
    )
    yield from state.drop_timer(stored_trial.id)
    yield from state.put_trial(ended_trial)
    if event.early_exit is not None:
        # Before the end, as two steps: a method replaces a trial with invalid hyperparameters only if it
        # hears of the exit first.
        exited = TrialExitedEarly(stored_trial.request_id, event.early_exit)
        yield from advance(state, stored_trial.experiment_id, exited)
    yield from advance(state, stored_trial.experiment_id, TrialClosed(stored_trial.request_id))


def _allocation_ended(state: State, event: scheduler.AllocationEnded) -> Iterable[Key]:
    yield from jobs.task_ended(state, event)
    stored_trial = state.trials.get(event.trial_id or 0)
    # An earlier run that ends late, such as on a worker that was given up, does not end the present one.
    if stored_trial is None or stored_trial.allocation_id != event.allocation_id:
        return
    ended = Exit(event.outcome, event.exit_code, event.reason, event.permanent, event.asked_to_leave)
    yield from state.drop_timer(stored_trial.id)
    yield from state.put_trial(replace(stored_trial, allocation_id=None, exit=ended))


def _reporting_trial(state: State, event: Any) -> Trial | None:
    """The trial that a script reports about, if the script belongs to the trial's current run."""
    stored_trial = state.trials.get(event.trial_id)
    if stored_trial is None or stored_trial.run != event.run:
        return None
    # A lost script may have gone on without a connection, and its results count when they arrive.
    return stored_trial if stored_trial.state not in TERMINAL or is_lost(stored_trial) else None


def _operation_completed(state: State, event: trial.OperationCompleted) -> Iterable[Key]:
    stored_trial = _reporting_trial(state, event)
    if (
        stored_trial is None
        or stored_trial.complete
        or event.seq != stored_trial.seq
        or event.length != stored_trial.length
    ):
        return
    # Before the step: what the method asks for next sets it to false again.
    yield from state.put_trial(replace(stored_trial, complete=True, made_progress=True))
    completed = ValidationCompleted(stored_trial.request_id, event.metric, event.length)
    yield from advance(state, stored_trial.experiment_id, completed)


def _trial_progressed(state: State, event: trial.Progressed) -> Iterable[Key]:
    stored_trial = _reporting_trial(state, event)
    if stored_trial is None:
        return
    if stored_trial.patience_s:
        yield from state.put_trial(replace(stored_trial, units=event.units))
    yield from advance(state, stored_trial.experiment_id, TrialProgress(stored_trial.request_id, event.units))


def _trial_exited_early(state: State, event: trial.ExitedEarly, at: float) -> Iterable[Key]:
    stored_trial = _reporting_trial(state, event)
    # The first of several ranks counts; the others exit because of it.
    if stored_trial is None or stored_trial.early is not None:
        return
    yield from state.put_trial(replace(stored_trial, early=event.reason))
    if stored_trial.allocation_id is not None and event.reason in GIVING_UP_REASONS:
        yield from state.put_timer(stored_trial.id, Timer(stored_trial.run, at + EXIT_GRACE_S))


def _trial_overdue(state: State, event: searcher.TrialOverdue) -> Iterable[Key]:
    yield from state.drop_timer(event.trial_id)
    stored_trial = state.trials.get(event.trial_id)
    if stored_trial is not None and stored_trial.run == event.run:
        yield from state.put_trial(replace(stored_trial, overdue=True))


def _preemption_acknowledged(state: State, event: trial.PreemptionAcknowledged) -> Iterable[Key]:
    stored_trial = _reporting_trial(state, event)
    return () if stored_trial is None else state.put_trial(replace(stored_trial, acknowledged=True))


def _checkpoint_stored(state: State, event: trial.CheckpointStored) -> Iterable[Key]:
    stored_trial = _reporting_trial(state, event)
    # A repeat may come after reports of later checkpoints, and must not make the trial resume from before
    # them.
    if stored_trial is None or event.uuid in stored_trial.recent_checkpoints:
        return ()
    changed_trial = replace(
        stored_trial,
        checkpoint=event.uuid,
        steps_completed=event.steps_completed,
        recent_checkpoints=(*stored_trial.recent_checkpoints, event.uuid)[-CHECKPOINTS_REMEMBERED:],
        made_progress=True,
    )
    return state.put_trial(changed_trial)


_FOLDS: dict[type, Callable[[State, Any], Iterable[Key]]] = {
    gateway.PoolBound: pool_bound,
    searcher.ExperimentCreated: _experiment_created,
    searcher.ExperimentActivated: _state_changed("ACTIVE"),
    searcher.ExperimentPaused: _state_changed("PAUSED"),
    searcher.ExperimentStopping: _state_changed(),
    searcher.ExperimentEnded: _state_changed(),
    searcher.OperationsPosted: _operations_posted,
    searcher.TrialRequested: _trial_requested,
    searcher.ExperimentKillForced: _kill_forced,
    searcher.ExperimentArchived: _experiment_archived,
    searcher.ExperimentDeleting: _experiment_deleting,
    searcher.TrialsDeleted: _trials_deleted,
    searcher.ExperimentDeleted: _experiment_deleted,
    checkpoints.ExperimentEmptied: _experiment_emptied,
    searcher.TrialCreated: _trial_created,
    searcher.OperationSet: _operation_set,
    searcher.TrialIdled: _trial_idled,
    searcher.RunRequested: _run_requested,
    searcher.StopRequested: _stop_requested,
    searcher.RunEnded: _run_ended,
    searcher.TrialStopping: _trial_stopping,
    searcher.TrialEnded: _trial_ended,
    searcher.TrialOverdue: _trial_overdue,
    scheduler.TaskSubmitted: jobs.task_submitted,
    scheduler.AllocationEnded: _allocation_ended,
    gateway.ExperimentMoved: jobs.experiment_moved,
    trial.OperationCompleted: _operation_completed,
    trial.Progressed: _trial_progressed,
    trial.PreemptionAcknowledged: _preemption_acknowledged,
    trial.CheckpointStored: _checkpoint_stored,
}


def _timed(fold: Callable[[State, Any, float], Iterable[Key]]) -> FoldOne[State]:
    return lambda state, recorded: fold(state, recorded.event, recorded.at)


_TIMED: dict[type, FoldOne[State]] = {
    trial.ExitedEarly: _timed(_trial_exited_early),
    trial.Heartbeat: _timed(unmanaged.fold_heartbeat),
    searcher.RunOpened: _timed(unmanaged.fold_run_opened),
}
"""Folds that use the time of their event."""

evolve = Fold[State]({**of_events(_FOLDS), **_TIMED, searcher.CreationKept: fold_result})
"""Folds one event; returns the keys of the changed records."""
