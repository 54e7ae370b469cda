"""The records that belong to an experiment and leave memory with it when the experiment is over."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from det_contracts.states import OVER
from services.kit.roots import Roots, loaded, loaded_by, of_experiment, of_what_names_it
from services.kit.rules import Key
from services.searcher.domain.state import HEARD, State


def _of_task(state: State, id: str) -> str:
    return id.partition(".")[0]


def _of_request_key(state: State, key: str) -> str | None:
    known = loaded(state.request_keys, key)
    return None if known is None else str(known.id)


def _members(state: State, root: str) -> Iterable[Key]:
    """All records of an experiment; empty after it was deleted."""
    id = int(root)
    yield from loaded_by(state, id, "experiments", "searches", "homes")
    known = loaded(state.experiments, id)
    named = loaded(state.request_keys, known.request_key) if known is not None else None
    if known is not None and named is not None and named.id == id:
        yield "request_keys", known.request_key
    for trial in state.trials_of(id):
        yield "trials", trial.id
        yield "tasks", trial.task_id


def _is_over(state: State, root: str) -> bool:
    known = loaded(state.experiments, int(root))
    if known is None or known.state not in OVER or known.state == "DELETING" or known.called is not None:
        return False
    return not state.has_live(known.id) and state.standing.first(known.id, HEARD) is None


def _index(state: State, keys: Collection[Key]) -> None:
    for name, id in keys:
        if name == "trials":
            state.standing.add(*state.place_of(id))


def _unindex(state: State, keys: Collection[Key]) -> None:
    for name, id in keys:
        if name == "trials":
            state.standing.discard(*state.place_of(id))


ROOTS: Roots[State] = Roots(
    of={
        "experiments": of_experiment,
        "searches": of_experiment,
        "homes": of_experiment,
        "trials": of_what_names_it("trials"),
        "tasks": _of_task,
        "request_keys": _of_request_key,
    },
    members=_members,
    is_over=_is_over,
    index=_index,
    unindex=_unindex,
    named_by={
        "experiment_id": "experiments",
        "experiment_ids": "experiments",
        "trial_id": "trials",
        "trial_ids": "trials",
        "request_key": "request_keys",
    },
)
