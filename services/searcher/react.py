"""The searcher's rules: which events its state calls for.

For a trial, in this order: announce it, announce its operation, answer its completion, judge the run that
ended, end it, request slots, reclaim slots. For an experiment: stop it, end it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from det_contracts import ids
from det_contracts.events import searcher
from det_contracts.states import ENDS_IN, OVER, STOPPING, TERMINAL
from det_contracts.states import State as Life
from services.kit.rules import TimerKind
from services.searcher.domain import Experiment, State, Trial, effective_state
from services.searcher.domain.fold import EXIT_GRACE_S
from services.searcher.domain.state import MAX_TRIALS_PER_PASS
from services.searcher.methods import Proposal, propose
from services.searcher.unmanaged import SILENT_REASON, end_if_all_ended, resume_lost_run
from services.searcher.verdict import judge

EARLY_EXIT_OF: dict[Life, str] = {"ERROR": "ERRORED", "CANCELED": "USER_CANCELED"}
NO_STOP, EXIT, KILL = 0, 1, 2
OVERDUE_REASON = f"it reported invalid hyperparameters and still ran {EXIT_GRACE_S:.0f} s later"


def react(state: State, key: tuple[str, Any]) -> Sequence[Any]:
    """Return the events that a record calls for; empty if there is nothing to do."""
    kind, id = key
    if kind == "experiments" and id in state.experiments:
        return _experiment_events(state, state.experiments[id])
    if kind == "trials" and id in state.trials:
        trial = state.trials[id]
        if trial.state in TERMINAL:
            return resume_lost_run(state, trial) if trial.heard else ()
        return _trial_events(state, trial)
    return ()


def _experiment_events(state: State, experiment: Experiment) -> Sequence[Any]:
    if experiment.state == "DELETING" and experiment.emptied is not None:
        to: Life = "DELETED" if experiment.emptied else "DELETE_FAILED"
        # In portions: one round cannot hold the events of very many trials.
        batch = (
            list(islice(state.trials_of(experiment.id), MAX_TRIALS_PER_PASS)) if experiment.emptied else []
        )
        if batch:
            trials, tasks = tuple(t.id for t in batch), tuple(t.task_id for t in batch)
            return [searcher.TrialsDeleted(experiment.id, trials, tasks, experiment.reason)]
        return [searcher.ExperimentDeleted(experiment.id, to, experiment.reason)]
    if experiment.state in OVER:
        return ()
    # Before the shutdown: a method that failed cannot say that it is done.
    if experiment.fault and experiment.state not in STOPPING:
        reason = f"the search method failed: {experiment.fault}"
        return [searcher.ExperimentStopping(experiment.id, "STOPPING_ERROR", reason)]
    if experiment.shutdown and experiment.state not in STOPPING:
        return [searcher.ExperimentStopping(experiment.id, experiment.shutdown, _shutdown_reason(experiment))]
    if experiment.state in STOPPING and not state.has_live_trials(experiment.id):
        return [searcher.ExperimentEnded(experiment.id, ENDS_IN[experiment.state], experiment.reason)]
    if experiment.unmanaged and not state.has_live_trials(experiment.id):
        return end_if_all_ended(state, experiment)
    return ()


def _shutdown_reason(experiment: Experiment) -> str:
    if experiment.shutdown == "STOPPING_ERROR":
        return "all trials failed"
    if experiment.shutdown == "STOPPING_CANCELED":
        return "all trials were canceled"
    return "the search is complete: every trial that it asked for is closed"


def _trial_events(records: State, trial: Trial) -> Sequence[Any]:
    experiment = records.experiments[trial.experiment_id]
    state = effective_state(experiment, trial)
    events: list[Any] = [*_announcements(records, trial)]
    if experiment.unmanaged:
        return [*events, *_unmanaged_trial_events(experiment, trial, state)]
    if trial.exit is not None:
        verdict = judge(experiment, trial, state)
        restarts_now = isinstance(verdict, searcher.RunEnded) and state == "ACTIVE" and not trial.complete
        # In one batch, so that its slots are never seen as free in between.
        return [*events, verdict, *([_run_request(experiment, trial)] if restarts_now else ())]
    # The run goes on until the scheduler says how it ended. Until then the trial can only be asked to stop.
    if trial.allocation_id is not None:
        return [*events, *_stop_request(experiment, trial, state)]
    if state in STOPPING:
        return [*events, _trial_ended(trial, ENDS_IN[state], trial.reason or experiment.reason)]
    if trial.complete and trial.closed:
        return [*events, _trial_ended(trial, "COMPLETED", "trained as far as the search asked")]
    if state == "ACTIVE" and not trial.complete:
        events.append(_run_request(experiment, trial))
    return events


def _unmanaged_trial_events(experiment: Experiment, trial: Trial, state: Life) -> Sequence[Any]:
    """A trial whose script runs elsewhere: end it if it was stopped or its script has gone silent."""
    if state in STOPPING:
        return [_trial_ended(trial, ENDS_IN[state], trial.reason or experiment.reason)]
    return [_trial_ended(trial, "ERROR", SILENT_REASON)] if trial.overdue else ()


def _proposal(records: State, trial: Trial) -> Proposal:
    if records.experiments[trial.experiment_id].unmanaged:
        return Proposal(trial.hparams, "a script outside of the cluster asked for it")
    return propose(records.searches[trial.experiment_id], trial.seed, trial.hparams)


def _announcements(records: State, trial: Trial) -> Sequence[Any]:
    events: list[Any] = []
    if not trial.announced:
        proposal = _proposal(records, trial)
        events.append(
            searcher.TrialCreated(
                trial_id=trial.id,
                experiment_id=trial.experiment_id,
                request_id=trial.request_id,
                task_id=trial.task_id,
                seed=trial.seed,
                hparams=proposal.hparams,
                reason=proposal.reason,
            )
        )
    if trial.announced_seq < trial.seq:
        first = trial.seq == 1
        reason = (
            "the first length that the search asks of it" if first else "the search wants it trained further"
        )
        events.append(searcher.OperationSet(trial.id, trial.seq, trial.length, reason))
    elif trial.complete and 0 < trial.seq != trial.idled_seq:
        final = trial.closed or records.experiments[trial.experiment_id].unmanaged
        reason = (
            "the search needs no further training of it"
            if final
            else "it waits for others to be compared with"
        )
        events.append(searcher.TrialIdled(trial.id, trial.seq, final, reason))
    return events


def _trial_ended(trial: Trial, state: Life, reason: str) -> searcher.TrialEnded:
    return searcher.TrialEnded(
        trial_id=trial.id,
        state=state,
        restarts=trial.restarts,
        early_exit=EARLY_EXIT_OF.get(state),
        reason=reason,
    )


def _run_request(experiment: Experiment, trial: Trial) -> searcher.RunRequested:
    run = trial.run + 1
    return searcher.RunRequested(
        trial_id=trial.id,
        experiment_id=experiment.id,
        task_id=trial.task_id,
        allocation_id=ids.allocation_id(trial.task_id, run),
        run=run,
        slots=experiment.slots,
        pool=experiment.pool,
        priority=experiment.priority,
        # Its own checkpoint first: after a pause a trial continues, and does not begin again from where it
        # was derived.
        checkpoint=trial.checkpoint or trial.source or experiment.source_checkpoint,
        steps_completed=trial.steps_completed,
        reason=f"the search wants it trained to length {trial.length}",
    )


def _stop_request(experiment: Experiment, trial: Trial, state: Life) -> Sequence[Any]:
    desired, reason = _desired_stop(experiment, trial, state)
    # A stop that was asked for is not asked for again, but may be followed by a kill, never the other way
    # round.
    if trial.stop_sent >= desired or trial.allocation_id is None:
        return ()
    return [
        searcher.StopRequested(
            trial_id=trial.id, allocation_id=trial.allocation_id, kill=desired == KILL, reason=reason
        )
    ]


def _desired_stop(experiment: Experiment, trial: Trial, state: Life) -> tuple[int, str]:
    """What should happen to a trial's current run, and why."""
    reason = trial.reason or experiment.reason
    if trial.overdue:
        return KILL, OVERDUE_REASON
    if experiment.forced or state in ("STOPPING_KILLED", "STOPPING_ERROR"):
        return KILL, reason
    # A search that is complete leaves its last runs alone: they hear that nothing follows, and exit by
    # themselves.
    return (NO_STOP if state in ("ACTIVE", "STOPPING_COMPLETED") else EXIT), reason


TIMERS = {
    # By this time a run that gave up must have exited.
    "timers": TimerKind(
        lambda state: state.exit_deadlines,
        lambda state, due_at, id: searcher.TrialOverdue(id, state.timers[id].run, due_at, OVERDUE_REASON),
    )
}
