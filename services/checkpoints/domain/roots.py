"""The records that belong to an experiment, and leave memory once all is known and nothing is being deleted.

Models and their versions stay in memory, as do records needed across many experiments: which experiment
starts from which checkpoint, and what each has stored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from det_contracts.events.searcher import TrialCreated
from services.checkpoints.domain.state import (
    GOING,
    Key,
    State,
    of_validation_key,
    place,
    validation_key,
)
from services.kit.roots import Roots, loaded, loaded_by, of_experiment, of_what_names_it
from services.kit.sorted_keys import SortedKeys

_of_trial = of_what_names_it("trials")


def _of_validation(state: State, key: str) -> str | None:
    return _of_trial(state, of_validation_key(key)[0])


def _members(state: State, root: str) -> Iterable[Key]:
    """All records of an experiment; empty after it was deleted."""
    id = int(root)
    yield from loaded_by(state, id, "experiments", "homes")
    for trial_id in state.trials_of.ids(id):
        yield "trials", trial_id
        yield from (("validations", validation_key(*key)) for key in state.validated_at.scan(trial_id))
    yield from (("checkpoints", uuid) for uuid in state.standing.ids(id))


def _is_over(state: State, root: str) -> bool:
    known = loaded(state.experiments, int(root))
    if known is None or not known.ended or known.unsettled or known.deleting or known.sweeping:
        return False
    return state.standing.first(known.id, GOING) is None


def _places(state: State, key: Key) -> Iterator[tuple[SortedKeys, tuple[Any, ...]]]:
    """The index entries of a loaded record, except in `unsaved`, which depends on two records."""
    name, id = key
    if name == "trials":
        yield state.trials_of, (state.trials[id].experiment_id, id)
    elif name == "checkpoints":
        one = state.checkpoints[id]
        yield state.standing, place(one)
        yield state.stored, (one.trial_id, one.order, id)
        yield state.saved_at, (one.trial_id, one.steps_completed, id)
    elif name == "validations":
        yield state.validated_at, of_validation_key(id)


def _index(state: State, keys: Collection[Key]) -> None:
    for key in keys:
        for index, at in _places(state, key):
            index.add(*at)
    # After all checkpoints, which tell whether a validation is at the steps of one.
    for steps in _validated(keys):
        if state.saved_at.first(*steps) is None:
            state.unsaved.add(*steps)


def _unindex(state: State, keys: Collection[Key]) -> None:
    for key in keys:
        for index, at in _places(state, key):
            index.discard(*at)
    for steps in _validated(keys):
        state.unsaved.discard(*steps)


def _validated(keys: Collection[Key]) -> Iterator[tuple[int, int]]:
    return (of_validation_key(id) for name, id in keys if name == "validations")


ROOTS: Roots[State] = Roots(
    of={
        "experiments": of_experiment,
        "homes": of_experiment,
        "trials": _of_trial,
        "checkpoints": of_what_names_it("checkpoints"),
        "validations": _of_validation,
    },
    members=_members,
    is_over=_is_over,
    index=_index,
    unindex=_unindex,
    begins={TrialCreated: "trial_id"},
    named_by={
        "experiment_id": "experiments",
        "trial_id": "trials",
        "trial_ids": "trials",
        "uuid": "checkpoints",
        "uuids": "checkpoints",
        "checkpoint": "checkpoints",
        "source_checkpoint": "checkpoints",
    },
)
