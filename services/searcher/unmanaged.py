"""Experiments whose trials run outside the cluster (REST spec, section 4).

Nothing is searched or scheduled: scripts report that they run, that they are alive and how they ended. An
experiment ends with the last of its trials, and continues when one of them runs again or a new one is
created.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from det_contracts import ids
from det_contracts.commands import CreateTrial, EndTrial, OpenRun
from det_contracts.events import searcher
from det_contracts.problems import Refused, failed_precondition, invalid, not_found
from det_contracts.states import ENDS_IN, TERMINAL
from det_contracts.states import State as Life
from services.kit.rules import Call, Result
from services.searcher.domain import Experiment, State, Trial
from services.searcher.domain.state import END_STATES, HEARD, LIVE_STATUSES
from services.searcher.domain.unmanaged import is_lost

SILENT_REASON = "its script was silent for too long"
HEARD_AGAIN_REASON = "its script sent a heartbeat again"


class ReportScriptSilent(msgspec.Struct, frozen=True, tag="report_script_silent"):
    """Sent by the monitor beside the searcher: a trial's script was silent for longer than its patience."""

    trial_id: int
    run: int
    silent_s: float
    user: str = "searcher"


def report_silent(state: State, command: ReportScriptSilent, call: Call) -> Result:
    """Declare a run lost, unless it is over or the log gives it more time."""
    trial, timer = state.trials.get(command.trial_id), state.timers.get(command.trial_id)
    if trial is None or timer is None or not trial.patience_s:
        return Result()
    # The log may have given it more time since the monitor looked, by a heartbeat of an earlier release or
    # another start.
    if trial.run != command.run or timer.due_at > call.at:
        return Result()
    # When the silence began to be too long, and not when it was noticed: that is what pages show.
    due_at = call.at - command.silent_s + trial.patience_s
    return Result([searcher.TrialOverdue(trial.id, trial.run, due_at, SILENT_REASON)])


class ReportScriptHeard(msgspec.Struct, frozen=True, tag="report_script_heard"):
    """Sent by the same monitor: a run that was not waited for has sent a heartbeat."""

    trial_id: int
    run: int
    user: str = "searcher"


def report_heard(state: State, command: ReportScriptHeard, call: Call) -> Result:
    """Resume a run that was declared lost. Any other heartbeat changes nothing."""
    trial = state.trials.get(command.trial_id)
    if trial is None or trial.run != command.run or not is_lost(trial):
        return Result()
    return Result(resume_lost_run(state, trial))


def create_trial(state: State, command: CreateTrial, call: Call) -> Result:
    """Create a trial; it is announced once it has a number."""
    experiment = _get_unmanaged_experiment(state, command.experiment_id)
    if not ids.is_request_id(command.request_id):
        raise invalid(f"request id '{command.request_id}' is not valid: it has {ids.REQUEST_ID_RULE}")
    if ids.trial_task_id(experiment.id, command.request_id) in state.tasks:
        return Result(value=command.request_id)
    reason = f"created by {command.user}"
    requested = searcher.TrialRequested(
        experiment_id=experiment.id,
        request_id=command.request_id,
        hparams=command.hparams,
        reason=reason,
    )
    return Result([*_reactivation(experiment, reason), requested], command.request_id)


def open_run(state: State, command: OpenRun, call: Call) -> Result:
    """Begin a run. It replaces a run that is still open."""
    trial = _get_unmanaged_trial(state, command.trial_id)
    if trial.run and not command.resume:
        raise failed_precondition(
            f"trial {trial.id} has run before: start it with resume to go on from its latest checkpoint, "
            "or create another trial"
        )
    experiment = _get_unmanaged_experiment(state, trial.experiment_id)
    reason = f"started by {command.user}"
    opened = _run_opened(trial, trial.run + 1, reason)
    answer = {"run": opened.run, "checkpoint": opened.checkpoint, "steps_completed": opened.steps_completed}
    return Result([*_reactivation(experiment, reason), opened], answer)


def end_trial(state: State, command: EndTrial, call: Call) -> Result:
    """End a trial as its script reports. Does nothing if it has already ended this way."""
    trial = _get_unmanaged_trial(state, command.trial_id)
    if trial.state in TERMINAL and not is_lost(trial):
        # A script that does not get the answer sends its end again.
        if trial.state == command.state:
            return Result()
        raise failed_precondition(f"trial {trial.id} has already ended as {trial.state}")
    experiment = state.experiments[trial.experiment_id]
    reason = f"its script ended, says {command.user}"
    ended = searcher.TrialEnded(
        trial_id=trial.id, state=command.state, restarts=trial.restarts, reason=reason
    )
    # The experiment of a lost trial may have ended; it then ends again, with the new outcome.
    has_ended = experiment.state in TERMINAL
    return Result([*(_reactivation(experiment, reason) if has_ended else ()), ended])


def refuse_pause(experiment: Experiment) -> None:
    """Raise `Refused` for an unmanaged experiment."""
    if experiment.unmanaged:
        raise failed_precondition(
            f"experiment {experiment.id} is unmanaged: its scripts run outside of the cluster, which cannot "
            "pause them; stop them where they run, or kill the experiment"
        )


def resume_lost_run(state: State, trial: Trial) -> Sequence[Any]:
    """Events that resume a lost trial; empty if its experiment is to be deleted."""
    experiment = state.experiments[trial.experiment_id]
    try:
        return [
            *_reactivation(experiment, HEARD_AGAIN_REASON),
            _run_opened(trial, trial.run, HEARD_AGAIN_REASON),
        ]
    except Refused:
        return ()


def end_if_all_ended(state: State, experiment: Experiment) -> Sequence[Any]:
    """The end of an experiment without open trials, in the state that a search would end in."""
    count = state.trials_by_status.count(experiment.id)
    # Without trials it has not begun, and a trial that was heard again is about to continue.
    if not count or state.trials_by_status.first(experiment.id, HEARD):
        return ()
    end_states = {end for end in END_STATES if state.trials_by_status.first(experiment.id, end)}
    to: Life = "STOPPING_ERROR" if end_states == {"ERROR"} else "STOPPING_COMPLETED"
    to = "STOPPING_CANCELED" if end_states == {"CANCELED"} else to
    reason = f"all its trials have ended, {count} of them"
    return [
        searcher.ExperimentStopping(experiment.id, to, reason),
        searcher.ExperimentEnded(experiment.id, ENDS_IN[to], reason),
    ]


def progress(state: State, experiment: Experiment, trained: Mapping[str, float]) -> float:
    """Progress of its open trials, 0 to 1, relative to the configured length.

    `trained` counts for trials whose scripts reported none.
    """
    live = list(state.trials_of(experiment.id, *LIVE_STATUSES))
    if not live or not experiment.length:
        return 0.0
    units = (trial.units or trained.get(trial.request_id, 0) for trial in live)
    return sum(min(max(unit / experiment.length, 0.0), 1.0) for unit in units) / len(live)


def _run_opened(trial: Trial, run: int, reason: str) -> searcher.RunOpened:
    return searcher.RunOpened(
        trial_id=trial.id,
        experiment_id=trial.experiment_id,
        task_id=trial.task_id,
        allocation_id=ids.allocation_id(trial.task_id, run),
        run=run,
        checkpoint=trial.checkpoint,
        steps_completed=trial.steps_completed,
        reason=reason,
    )


def _get_unmanaged_experiment(state: State, id: int) -> Experiment:
    experiment = state.experiments.get(id)
    if experiment is None:
        raise not_found("experiment", id)
    if not experiment.unmanaged:
        raise failed_precondition(
            f"experiment {id} is managed: its search makes its trials, and the cluster runs them"
        )
    return experiment


def _get_unmanaged_trial(state: State, id: int) -> Trial:
    trial = state.trials.get(id)
    if trial is None:
        raise not_found("trial", id)
    if not state.experiments[trial.experiment_id].unmanaged:
        raise failed_precondition(
            f"trial {id} is managed: the cluster runs it, and knows its state; it can be killed"
        )
    return trial


def _reactivation(experiment: Experiment, reason: str) -> Sequence[Any]:
    """The event that lets an ended experiment continue, if needed. Raises `Refused` if it cannot."""
    if experiment.state == "ACTIVE":
        return ()
    if experiment.state in TERMINAL:
        return [searcher.ExperimentActivated(experiment.id, reason)]
    raise failed_precondition(f"experiment in incompatible state {experiment.state}")
