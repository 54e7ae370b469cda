"""Indexes of the loaded records. A lookup in an index loads the records it concerns."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from det_contracts.states import TERMINAL
from services.catalogue.domain.state import Experiment, State, Trial, Validation, request_key
from services.kit.roots import Key, PagedTable
from services.kit.sorted_keys import Key as Place
from services.kit.sorted_keys import LoadingKeys, SortedKeys

OF_ROOTS = ("trials", "validations", "checkpoints", "allocations")
"""The indexed tables whose records are paged out and in with their experiment."""


def index(state: State) -> None:
    """Build all indexes from the loaded records."""
    for name in ("trials_of", "open_trials", "ranked_trials", "chores", "runs_of"):
        setattr(state, name, LoadingKeys(state.load))
    for name in ("ranked", "reached", "saved", "saved_at"):
        setattr(state, name, LoadingKeys(lambda trial_id: state.trials.get(trial_id)))
    state.task_trials = PagedTable({}, lambda task_id: _load_task(state, task_id))
    enter(state, [(name, id) for name in OF_ROOTS for id in dict.keys(getattr(state, name))])
    state.live_of = SortedKeys((one.experiment_id, id) for id, one in state.live.items())
    state.numbers = SortedKeys((one.model_id, one.number, id) for id, one in state.versions.items())
    state.filed = SortedKeys((one.project_id, one.id) for one in state.experiments.values())
    state.project_of = {one.id: one.project_id for one in state.experiments.values()}
    state.models_in = SortedKeys((one.workspace_id, id) for id, one in state.models.items())
    state.joined = {}
    for key, share in state.shares.items():
        allocation_id, _, number = key.rpartition("#")
        state.joined[request_key(allocation_id, share.request_id)] = int(number)


def _load_task(state: State, task_id: str) -> bool:
    owner = task_id.partition(".")[0]
    if owner.isdecimal():
        state.load(int(owner))
    return dict.__contains__(state.task_trials, task_id)


def enter(state: State, keys: Collection[Key]) -> None:
    """Add loaded records to the indexes."""
    for key in keys:
        for known, place in _places(state, key):
            known.add(*place)
        if key[0] == "trials":
            state.task_trials[state.trials[key[1]].task_id] = key[1]


def leave(state: State, keys: Collection[Key]) -> None:
    """Remove records from the indexes."""
    for key in keys:
        for known, place in _places(state, key):
            known.discard(*place)
        if key[0] == "trials":
            dict.pop(state.task_trials, state.trials[key[1]].task_id, None)


def _places(state: State, key: Key) -> Iterator[tuple[SortedKeys, Place]]:
    name, id = key
    if name == "trials":
        trial = state.trials[id]
        yield state.trials_of, (trial.experiment_id, id)
        if (place := open_place(trial)) is not None:
            yield state.open_trials, place
        if (place := ranked_place(state, trial)) is not None:
            yield state.ranked_trials, place
    elif name == "validations":
        validation = state.validations[id]
        yield state.ranked, score(state, validation)
        yield state.reached, (validation.trial_id, validation.run, validation.steps)
    elif name == "checkpoints":
        stored = state.checkpoints[id]
        yield state.saved, (stored.trial_id, stored.number, id)
        yield state.saved_at, (stored.trial_id, stored.steps, stored.number, id)
    elif name == "allocations":
        run = state.allocations[id]
        yield state.runs_of, (run.experiment_id, id)
        if run.trial_id is None:
            yield state.chores, (run.experiment_id, id)


def open_place(trial: Trial) -> Place | None:
    """A trial's key in the index of open trials; None if it has ended."""
    return (trial.experiment_id, trial.id) if trial.own not in TERMINAL else None


def ranked_place(state: State, trial: Trial) -> Place | None:
    """A trial's key in the ranking of its experiment by best metric; None without a metric."""
    if trial.best is None:
        return None
    return trial.experiment_id, signed(state.experiments[trial.experiment_id], trial.best.metric), trial.id


def score(state: State, one: Validation) -> Place:
    """A validation's key in the ranking of its trial's validations."""
    experiment = state.experiments[state.trials[one.trial_id].experiment_id]
    return one.trial_id, signed(experiment, one.metric), one.run, one.steps


def signed(experiment: Experiment, metric: float) -> float:
    """The metric, negated if larger is better, so that the smallest is the best."""
    return metric if experiment.smaller_is_better else -metric
