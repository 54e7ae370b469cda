"""The records that belong to an experiment, and leave memory once all is known and nothing is being deleted.

Models and their versions stay in memory, as do records needed across many experiments: which experiment
starts from which checkpoint, and what each has stored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from det_contracts.events.searcher import TrialCreated
from services.checkpoints.domain.state import (
    DELETING,
    Key,
    State,
    parse_validation_key,
    status_index_key,
    validation_key,
)
from services.kit.roots import Roots, experiment_root, get_loaded, loaded_keys, root_by_experiment_id
from services.kit.sorted_keys import SortedKeys

_root_of_trial = root_by_experiment_id("trials")


def _root_of_validation(state: State, key: str) -> str | None:
    return _root_of_trial(state, parse_validation_key(key)[0])


def _members(state: State, root: str) -> Iterable[Key]:
    """All records of an experiment; empty after it was deleted."""
    id = int(root)
    yield from loaded_keys(state, id, "experiments", "homes")
    for trial_id in state.trials_of.ids(id):
        yield "trials", trial_id
        yield from (("validations", validation_key(*key)) for key in state.validation_steps.scan(trial_id))
    yield from (("checkpoints", uuid) for uuid in state.checkpoints_by_status.ids(id))


def _is_over(state: State, root: str) -> bool:
    experiment = get_loaded(state.experiments, int(root))
    if (
        experiment is None
        or not experiment.ended
        or experiment.unsettled
        or experiment.deleting
        or experiment.sweeping
    ):
        return False
    return state.checkpoints_by_status.first(experiment.id, DELETING) is None


def _index_entries(state: State, key: Key) -> Iterator[tuple[SortedKeys, tuple[Any, ...]]]:
    """The index entries of a loaded record, except in `validations_without_checkpoint`, which depends on two
    records."""
    name, id = key
    if name == "trials":
        yield state.trials_of, (state.trials[id].experiment_id, id)
    elif name == "checkpoints":
        checkpoint = state.checkpoints[id]
        yield state.checkpoints_by_status, status_index_key(checkpoint)
        yield state.stored_by_trial, (checkpoint.trial_id, checkpoint.order, id)
        yield state.checkpoint_steps, (checkpoint.trial_id, checkpoint.steps_completed, id)
    elif name == "validations":
        yield state.validation_steps, parse_validation_key(id)


def _index(state: State, keys: Collection[Key]) -> None:
    for key in keys:
        for index, at in _index_entries(state, key):
            index.add(*at)
    # After all checkpoints, which tell whether a validation is at the steps of one.
    for steps in _validation_keys(keys):
        if state.checkpoint_steps.first(*steps) is None:
            state.validations_without_checkpoint.add(*steps)


def _unindex(state: State, keys: Collection[Key]) -> None:
    for key in keys:
        for index, at in _index_entries(state, key):
            index.discard(*at)
    for steps in _validation_keys(keys):
        state.validations_without_checkpoint.discard(*steps)


def _validation_keys(keys: Collection[Key]) -> Iterator[tuple[int, int]]:
    return (parse_validation_key(id) for name, id in keys if name == "validations")


ROOTS: Roots[State] = Roots(
    root_lookups={
        "experiments": experiment_root,
        "homes": experiment_root,
        "trials": _root_of_trial,
        "checkpoints": root_by_experiment_id("checkpoints"),
        "validations": _root_of_validation,
    },
    members=_members,
    is_over=_is_over,
    index=_index,
    unindex=_unindex,
    creation_events={TrialCreated: lambda event: ("trials", event.trial_id)},
    reference_fields={
        "experiment_id": "experiments",
        "trial_id": "trials",
        "trial_ids": "trials",
        "uuid": "checkpoints",
        "uuids": "checkpoints",
        "checkpoint": "checkpoints",
        "source_checkpoint": "checkpoints",
    },
)
