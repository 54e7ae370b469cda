"""Indexes of the loaded records. A lookup in an index loads the records it concerns."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from det_contracts import ids
from det_contracts.states import TERMINAL
from services.catalogue.domain.state import Experiment, State, Trial, Validation, request_key
from services.kit.roots import Key, PagedTable
from services.kit.sorted_keys import Key as IndexEntry
from services.kit.sorted_keys import LoadingKeys, SortedKeys

PAGED_TABLES = ("trials", "validations", "checkpoints", "allocations")
"""The indexed tables whose records are paged out and in with their experiment."""


def build_indexes(state: State) -> None:
    """Build all indexes from the loaded records."""
    for name in ("trials_of", "open_trials", "ranked_trials", "runs_without_trial", "runs_of"):
        setattr(state, name, LoadingKeys(state.load))
    for name in ("ranked_validations", "validation_steps", "checkpoints_of", "checkpoints_at"):
        setattr(state, name, LoadingKeys(lambda trial_id: state.trials.get(trial_id)))
    state.task_trials = PagedTable({}, lambda task_id: _load_task(state, task_id))
    # `dict.keys` does not load anything: the tables' own methods would page in every experiment.
    add_to_indexes(state, [(name, id) for name in PAGED_TABLES for id in dict.keys(getattr(state, name))])
    state.live_of = SortedKeys((live.experiment_id, id) for id, live in state.live.items())
    state.versions_of = SortedKeys(
        (version.model_id, version.number, id) for id, version in state.versions.items()
    )
    state.sources_of_trial = SortedKeys((source.trial_id, key) for key, source in state.sources.items())
    state.trials_using = SortedKeys((source.checkpoint, source.trial_id) for source in state.sources.values())
    state.experiments_in = SortedKeys(
        (experiment.project_id, experiment.id) for experiment in state.experiments.values()
    )
    state.project_of = {experiment.id: experiment.project_id for experiment in state.experiments.values()}
    state.models_in = SortedKeys((model.workspace_id, id) for id, model in state.models.items())
    state.joined = {}
    for key, share in state.shares.items():
        allocation_id, _, number = key.rpartition("#")
        state.joined[request_key(allocation_id, share.request_id)] = int(number)


def _load_task(state: State, task_id: str) -> bool:
    owner = ids.parse_number(task_id.partition(".")[0])
    if owner is not None:
        state.load(owner)
    return dict.__contains__(state.task_trials, task_id)


def add_to_indexes(state: State, keys: Collection[Key]) -> None:
    """Add loaded records to the indexes."""
    for key in keys:
        for sorted_index, entry in _index_entries(state, key):
            sorted_index.add(*entry)
        if key[0] == "trials":
            state.task_trials[state.trials[key[1]].task_id] = key[1]


def remove_from_indexes(state: State, keys: Collection[Key]) -> None:
    """Remove records from the indexes."""
    for key in keys:
        for sorted_index, entry in _index_entries(state, key):
            sorted_index.discard(*entry)
        if key[0] == "trials":
            dict.pop(state.task_trials, state.trials[key[1]].task_id, None)


def _index_entries(state: State, key: Key) -> Iterator[tuple[SortedKeys, IndexEntry]]:
    name, id = key
    if name == "trials":
        trial = state.trials[id]
        yield state.trials_of, (trial.experiment_id, id)
        if (entry := open_trial_entry(trial)) is not None:
            yield state.open_trials, entry
        if (entry := ranked_trial_entry(state, trial)) is not None:
            yield state.ranked_trials, entry
    elif name == "validations":
        validation = state.validations[id]
        yield state.ranked_validations, ranked_validation_entry(state, validation)
        yield state.validation_steps, (validation.trial_id, validation.run, validation.steps)
    elif name == "checkpoints":
        stored = state.checkpoints[id]
        yield state.checkpoints_of, (stored.trial_id, stored.number, id)
        yield state.checkpoints_at, (stored.trial_id, stored.steps, stored.number, id)
    elif name == "allocations":
        run = state.allocations[id]
        yield state.runs_of, (run.experiment_id, id)
        if run.trial_id is None:
            yield state.runs_without_trial, (run.experiment_id, id)


def open_trial_entry(trial: Trial) -> IndexEntry | None:
    """A trial's key in the index of open trials; None if it has ended."""
    return (trial.experiment_id, trial.id) if trial.own not in TERMINAL else None


def ranked_trial_entry(state: State, trial: Trial) -> IndexEntry | None:
    """A trial's key in the ranking of its experiment by best metric; None without a metric."""
    if trial.best is None:
        return None
    return (
        trial.experiment_id,
        signed_metric(state.experiments[trial.experiment_id], trial.best.metric),
        trial.id,
    )


def ranked_validation_entry(state: State, validation: Validation) -> IndexEntry:
    """A validation's key in the ranking of its trial's validations."""
    experiment = state.experiments[state.trials[validation.trial_id].experiment_id]
    return validation.trial_id, signed_metric(experiment, validation.metric), validation.run, validation.steps


def signed_metric(experiment: Experiment, metric: float) -> float:
    """The metric, negated if larger is better, so that the smallest is the best."""
    return metric if experiment.smaller_is_better else -metric
