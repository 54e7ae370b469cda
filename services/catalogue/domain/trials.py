"""Folds events about trials."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from det_contracts.envelope import Recorded
from det_contracts.events import metrics, searcher, trial
from services.catalogue.domain.allocations import close_run
from services.catalogue.domain.experiments import with_effective_state
from services.catalogue.domain.indexed_records import put_experiment, put_trial
from services.catalogue.domain.state import State, Trial
from services.kit.rules import Key

replace = msgspec.structs.replace


def created(state: State, recorded: Recorded) -> Iterable[Key]:
    """A trial was created."""
    event: searcher.TrialCreated = recorded.event
    id, experiment = event.trial_id, state.experiments[event.experiment_id]
    fresh = Trial(
        id=id,
        experiment_id=experiment.id,
        request_id=event.request_id,
        task_id=event.task_id,
        seed=event.seed,
        hparams=event.hparams,
        created_at=recorded.at,
        state="ACTIVE",
        reason=event.reason,
    )
    yield from put_trial(state, with_effective_state(fresh, experiment.state, experiment.reason))
    first = experiment.first_trial or id
    yield from put_experiment(state, replace(experiment, trials=experiment.trials + 1, first_trial=first))


def stopping(state: State, recorded: Recorded) -> Iterable[Key]:
    """A person stopped a trial."""
    event: searcher.TrialStopping = recorded.event
    trial_record = state.trials[event.trial_id]
    return put_trial(state, replace(trial_record, own=event.to, state=event.to, reason=event.reason))


def ended(state: State, recorded: Recorded) -> Iterable[Key]:
    """A trial ended."""
    event: searcher.TrialEnded = recorded.event
    stopped = event.state == "CANCELED"
    yield from close_run(state, state.trials[event.trial_id], recorded.at, event.reason, stopped=stopped)
    ended_trial = replace(
        state.trials[event.trial_id],
        own=event.state,
        state=event.state,
        phase="",
        reason=event.reason,
        restarts=event.restarts,
        ended_at=recorded.at,
        # A lost script that reports how it ended has ended before.
        settled=False,
    )
    yield from put_trial(state, ended_trial)


def settled(state: State, recorded: Recorded) -> Iterable[Key]:
    """All reports of a trial have been judged."""
    event: metrics.Settled = recorded.event
    trial_record = state.trials.get(event.trial_id)
    return put_trial(state, replace(trial_record, settled=True)) if trial_record is not None else ()


def operation_answered(state: State, recorded: Recorded) -> Iterable[Key]:
    """The search method answered an operation, with the next one or with nothing to do."""
    event: searcher.OperationSet | searcher.TrialIdled = recorded.event
    trial_record = state.trials[event.trial_id]
    last_seq = event.seq - 1 if isinstance(event, searcher.OperationSet) else event.seq
    return (
        put_trial(state, replace(trial_record, answered=last_seq)) if last_seq > trial_record.answered else ()
    )


def run_ended(state: State, recorded: Recorded) -> Iterable[Key]:
    """A run ended, and its trial continues."""
    event: searcher.RunEnded = recorded.event
    trial_record = state.trials[event.trial_id]
    return put_trial(state, replace(trial_record, restarts=event.restarts, reason=event.reason))


def status_set(state: State, recorded: Recorded) -> Iterable[Key]:
    """A script set the text about what it is doing."""
    event: trial.StatusSet = recorded.event
    trial_record = state.trials.get(event.trial_id)
    # A text of an earlier run may arrive after the next one has begun.
    if trial_record is None or trial_record.run != event.run:
        return ()
    return put_trial(state, replace(trial_record, runner_state=event.status))
