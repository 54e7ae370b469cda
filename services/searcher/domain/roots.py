"""The records that belong to an experiment and leave memory with it when the experiment is over."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from det_contracts.events.searcher import ExperimentCreated, TrialCreated
from det_contracts.states import OVER
from services.kit.roots import Roots, experiment_root, get_loaded, loaded_keys, root_by_experiment_id
from services.kit.rules import Key
from services.searcher.domain.state import HEARD, State


def _task_root(state: State, id: str) -> str:
    # The experiment's number is the first part of a trial's task id, so the root is known without the record.
    return id.partition(".")[0]


def _request_key_root(state: State, key: str) -> str | None:
    named = get_loaded(state.request_keys, key)
    return None if named is None else str(named.id)


def _members(state: State, root: str) -> Iterable[Key]:
    """All records of an experiment; empty after it was deleted."""
    id = int(root)
    yield from loaded_keys(state, id, "experiments", "searches", "homes")
    experiment = get_loaded(state.experiments, id)
    named = get_loaded(state.request_keys, experiment.request_key) if experiment is not None else None
    if experiment is not None and named is not None and named.id == id:
        yield "request_keys", experiment.request_key
    for trial in state.trials_of(id):
        yield "trials", trial.id
        yield "tasks", trial.task_id


def _is_over(state: State, root: str) -> bool:
    experiment = get_loaded(state.experiments, int(root))
    # `called`: its trials are still being told of its end, a portion at a time.
    if (
        experiment is None
        or experiment.state not in OVER
        or experiment.state == "DELETING"
        or experiment.called is not None
    ):
        return False
    return (
        not state.has_live_trials(experiment.id)
        and state.trials_by_status.first(experiment.id, HEARD) is None
    )


def _index(state: State, keys: Collection[Key]) -> None:
    for name, id in keys:
        if name == "trials":
            state.trials_by_status.add(*state.status_key(id))


def _unindex(state: State, keys: Collection[Key]) -> None:
    for name, id in keys:
        if name == "trials":
            state.trials_by_status.discard(*state.status_key(id))


ROOTS: Roots[State] = Roots(
    root_lookups={
        "experiments": experiment_root,
        "searches": experiment_root,
        "homes": experiment_root,
        "trials": root_by_experiment_id("trials"),
        "tasks": _task_root,
        "request_keys": _request_key_root,
    },
    members=_members,
    is_over=_is_over,
    index=_index,
    unindex=_unindex,
    creation_events={
        # Numbers of experiments are never given again.
        ExperimentCreated: lambda event: ("experiments", event.experiment_id),
        # A trial that waits for this is in memory, unless an event of the same portion creates it.
        TrialCreated: lambda event: ("trials", event.trial_id),
    },
    reference_fields={
        "experiment_id": "experiments",
        "experiment_ids": "experiments",
        "trial_id": "trials",
        "trial_ids": "trials",
        "request_key": "request_keys",
    },
)
