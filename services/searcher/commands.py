"""Commands that the searcher accepts, one function each, checked against the folded state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from det_contracts.commands import (
    ChangeExperiment,
    CreateExperiment,
    CreateTrial,
    EndTrial,
    KillTrial,
    OpenRun,
    PostOperations,
    ReviseExperiment,
)
from det_contracts.events import searcher
from det_contracts.problems import failed_precondition, invalid, not_found
from det_contracts.states import OVER, STOPPING, TERMINAL
from services.kit.authz.people import check_project, workspace_of
from services.kit.idempotency import idempotent
from services.kit.pool_bindings import check_pool
from services.kit.quotas.limits import check_jobs, workspace_name
from services.kit.quotas.usage import Account
from services.kit.rules import Call, Result
from services.searcher.custom import post_operations
from services.searcher.domain import Experiment, State
from services.searcher.methods import MethodError, newest_version, start, unavailable_reason
from services.searcher.unmanaged import (
    ReportScriptHeard,
    ReportScriptSilent,
    create_trial,
    end_trial,
    open_run,
    refuse_pause,
    report_heard,
    report_silent,
)


def create_experiment(state: State, command: CreateExperiment, call: Call) -> Result:
    """Accept a completed configuration. Repeating a `request_key` returns the first experiment."""
    # Before all checks: a repetition must not be refused because the first one used up the quota.
    existing = state.request_keys.get(command.request_key) if command.request_key else None
    if existing is not None:
        return Result(value=existing.id)
    check_project(state, command.project_id)
    # An unmanaged experiment uses no slots, runs in no pool and has no search, so none of these limits it.
    if not command.unmanaged:
        _check_pool(state, command)
        check_jobs(state, state.open_jobs, Account(command.user, command.project_id))
        _check_search(command.config)
    # Not the number of known experiments: ids of deleted ones are never used again.
    totals = state.totals.get("all")
    id = (totals.experiments if totals else 0) + 1
    reason = f"submitted by {command.user}" + (f", {command.commit}" if command.commit else "")
    created = searcher.ExperimentCreated(
        experiment_id=id,
        user=command.user,
        config=command.config,
        original_config=command.original_config,
        context=command.context,
        parent_id=command.parent_id,
        project_id=command.project_id,
        source_checkpoint=command.source_checkpoint,
        request_key=command.request_key,
        unmanaged=command.unmanaged,
        agent_user=command.agent_user,
        # In the event, so that a later release that decides differently replays this search as it went.
        method_version=1 if command.unmanaged else newest_version(command.config["searcher"]),
        reason=reason,
    )
    events: list[Any] = [created]
    # Scripts outside of the cluster may start at any moment, and nobody would activate it for them.
    if command.activate or command.unmanaged:
        events.append(searcher.ExperimentActivated(id, reason))
    return Result(events, id)


def _check_pool(state: State, command: CreateExperiment) -> None:
    """Raise `Refused` for a pool that is bound to other workspaces."""
    space = workspace_of(state, command.project_id)
    check_pool(
        state, command.config["resources"]["resource_pool"] or "default", space, workspace_name(state, space)
    )


def _check_search(config: dict[str, Any]) -> None:
    """Raise `Refused` for a search that cannot begin."""
    try:
        # Begun only to see whether it can begin. The search itself runs in the fold (decision 2).
        start(config["searcher"], config["hyperparameters"], config["reproducibility"]["experiment_seed"])
    except MethodError as error:
        raise invalid(f"<config>.searcher: {error}") from None
    if missing := unavailable_reason(config["searcher"]):
        raise invalid(f"<config>.searcher: {missing}")


def change_experiment(state: State, command: ChangeExperiment, call: Call) -> Result:
    """Change an experiment's state on a user's request (scheduling spec, 8.2).

    Does nothing if it is already so.
    """
    experiment = state.experiments.get(command.experiment_id)
    if experiment is None:
        raise not_found("experiment", command.experiment_id)
    return Result(_ACTIONS[command.action](experiment, command.user))


def _activate(experiment: Experiment, user: str) -> list[Any]:
    _refuse_unless_open(experiment)
    if experiment.state == "ACTIVE":
        return []
    return [searcher.ExperimentActivated(experiment.id, f"activated by {user}")]


def _pause(experiment: Experiment, user: str) -> list[Any]:
    refuse_pause(experiment)
    _refuse_unless_open(experiment)
    if experiment.state == "PAUSED":
        return []
    return [searcher.ExperimentPaused(experiment.id, f"paused by {user}")]


def _cancel(experiment: Experiment, user: str) -> list[Any]:
    if experiment.state in OVER or experiment.state in STOPPING:
        return []
    return [searcher.ExperimentStopping(experiment.id, "STOPPING_CANCELED", f"canceled by {user}")]


def _kill(experiment: Experiment, user: str) -> list[Any]:
    if experiment.state in OVER or experiment.state == "STOPPING_KILLED":
        return []
    reason = f"killed by {user}"
    # How it ends is decided already; the kill only stops the trials that are still running.
    if experiment.state in ("STOPPING_COMPLETED", "STOPPING_ERROR"):
        return [] if experiment.forced else [searcher.ExperimentKillForced(experiment.id, reason)]
    return [searcher.ExperimentStopping(experiment.id, "STOPPING_KILLED", reason)]


def _archive(experiment: Experiment, user: str) -> list[Any]:
    _refuse_unless_terminal(experiment)
    if experiment.archived:
        raise failed_precondition("Experiment is already archived.")
    return [searcher.ExperimentArchived(experiment.id, True, f"archived by {user}")]


def _unarchive(experiment: Experiment, user: str) -> list[Any]:
    _refuse_unless_terminal(experiment)
    if not experiment.archived:
        raise failed_precondition("Experiment is not archived.")
    return [searcher.ExperimentArchived(experiment.id, False, f"unarchived by {user}")]


def _delete(experiment: Experiment, user: str) -> list[Any]:
    if experiment.state not in TERMINAL and experiment.state != "DELETE_FAILED":
        raise failed_precondition(f"cannot delete experiment in {experiment.state} state")
    return [searcher.ExperimentDeleting(experiment.id, f"deleted by {user}")]


_ACTIONS = {
    "activate": _activate,
    "pause": _pause,
    "cancel": _cancel,
    "kill": _kill,
    "archive": _archive,
    "unarchive": _unarchive,
    "delete": _delete,
}


def _refuse_unless_terminal(experiment: Experiment) -> None:
    if experiment.state not in TERMINAL:
        raise failed_precondition(
            f"Experiment is not in terminal state. Experiment {experiment.id} is {experiment.state}: wait "
            "until it has ended, or cancel or kill it first"
        )


def _refuse_unless_open(experiment: Experiment) -> None:
    if experiment.state in TERMINAL:
        raise failed_precondition(
            f"experiment in terminal state: experiment {experiment.id} is {experiment.state} and will not "
            "run again. Create a new experiment from its configuration; searcher.source_trial_id lets that "
            "begin with the checkpoint of one of its trials"
        )
    if experiment.state not in ("ACTIVE", "PAUSED"):
        raise failed_precondition(
            f"experiment in incompatible state {experiment.state}: experiment {experiment.id} is being "
            "stopped or deleted"
        )


def revise_experiment(state: State, command: ReviseExperiment, call: Call) -> Result:
    """Change fields of a live experiment. The owner of the configuration has already checked the values."""
    experiment = state.experiments.get(command.experiment_id)
    if experiment is None:
        raise not_found("experiment", command.experiment_id)
    if not command.changes:
        return Result()
    reason = f"{', '.join(sorted(command.changes))} changed by {command.user}"
    return Result([searcher.ExperimentRevised(experiment.id, command.changes, reason)])


def kill_trial(state: State, command: KillTrial, call: Call) -> Result:
    """Cancel one trial. Does nothing if the trial is over."""
    trial = state.trials.get(command.trial_id)
    if trial is None:
        raise not_found("trial", command.trial_id)
    # A trial that is being stopped goes on being stopped as before; a kill does not change how it ends.
    if trial.state != "ACTIVE":
        return Result()
    return Result([searcher.TrialStopping(trial.id, "STOPPING_KILLED", f"killed by {command.user}")])


COMMANDS: dict[Any, Callable[[State, Any, Call], Result]] = {
    CreateExperiment: idempotent(create_experiment, searcher.CreationKept),
    ChangeExperiment: change_experiment,
    ReviseExperiment: revise_experiment,
    KillTrial: kill_trial,
    PostOperations: post_operations,
    CreateTrial: idempotent(create_trial, searcher.CreationKept),
    OpenRun: open_run,
    EndTrial: end_trial,
    ReportScriptSilent: report_silent,
    ReportScriptHeard: report_heard,
}
