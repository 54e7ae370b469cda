"""Converts a kind and an id to the subject of a question."""

from __future__ import annotations

from det_contracts import ids
from det_contracts.problems import invalid, not_found
from services.catalogue.display_state import experiment_state, trial_state
from services.catalogue.domain import Experiment, State
from services.why.subject import Subject

KINDS = ("experiment", "trial", "allocation", "job", "checkpoint", "worker", "pool")
JOB = "experiment-"
MAX_RUNS_OF_JOB = 3
"""Maximum number of current runs whose causes are shown for a job."""


def find_subject(state: State, kind: str, id: str) -> Subject:
    """The subject of a question.

    Raises `Refused`: invalid for an unknown kind, not found for an unknown id.
    """
    match kind:
        case "experiment":
            experiment = _experiment(state, kind, id, id)
            return Subject(kind=kind, id=id, state=experiment_state(experiment), experiment_id=experiment.id)
        case "job":
            experiment = _experiment(state, kind, id, id.removeprefix(JOB))
            runs = list(state.live_of.ids(experiment.id))
            return Subject(
                kind=kind,
                id=f"{JOB}{experiment.id}",
                state=experiment_state(experiment),
                experiment_id=experiment.id,
                allocation_ids=tuple(_newest(state, runs)),
            )
        case "trial":
            return _trial(state, id)
        case "allocation":
            return _allocation(state, id)
        case "checkpoint":
            return _checkpoint(state, id)
        case "worker":
            status = "CONNECTED" if _require_token(kind, id) in state.workers else "NOT CONNECTED"
            return Subject(kind=kind, id=id, state=status, experiment_id=0)
        case "pool":
            count = sum(worker.pool == _require_token(kind, id) for worker in state.workers.values())
            status = f"at {count} connected worker{'' if count == 1 else 's'}"
            return Subject(kind=kind, id=id, state=status, experiment_id=0)
    raise invalid(f"kind must be one of {', '.join(KINDS)}, not '{kind}'")


def _require_token(kind: str, id: str) -> str:
    """Validate the id of something that only the log knows."""
    if not ids.is_token(id):
        raise not_found(kind, id)
    return id


def _experiment(state: State, kind: str, id: str, number: str) -> Experiment:
    experiment = state.experiments.get(parsed) if (parsed := ids.parse_number(number)) is not None else None
    if experiment is None:
        raise not_found(kind, id)
    return experiment


def _newest(state: State, ids: list[str]) -> list[str]:
    running = [id for id in ids if state.allocations[id].started_at is not None]
    return sorted(running or ids, key=lambda id: -state.allocations[id].requested_at)[:MAX_RUNS_OF_JOB]


def _trial(state: State, id: str) -> Subject:
    trial = state.trials.get(number) if (number := ids.parse_number(id)) is not None else None
    if trial is None:
        raise not_found("trial", id)
    return Subject(
        kind="trial",
        id=id,
        state=trial_state(trial),
        experiment_id=trial.experiment_id,
        trial_id=trial.id,
        task_id=trial.task_id,
        allocation_ids=(trial.allocation_id,) if trial.allocation_id else (),
    )


def _allocation(state: State, id: str) -> Subject:
    allocation = state.allocations.get(id)
    if allocation is None or allocation.task_owner is not None:
        raise not_found("allocation", id)
    return Subject(
        kind="allocation",
        id=id,
        state=allocation.state,
        experiment_id=allocation.experiment_id,
        trial_id=allocation.trial_id,
        allocation_ids=(id,),
    )


def _checkpoint(state: State, id: str) -> Subject:
    checkpoint = state.checkpoints.get(id)
    if checkpoint is None:
        raise not_found("checkpoint", id)
    return Subject(
        kind="checkpoint",
        id=id,
        state=checkpoint.state,
        experiment_id=checkpoint.experiment_id,
        trial_id=checkpoint.trial_id,
        task_id=state.trials[checkpoint.trial_id].task_id,
    )
