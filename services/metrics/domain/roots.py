"""Which records belong together, and leave memory once nothing more of them is expected.

A trial is a root, with everything remembered about its reports. The log line sources of an experiment are
another root, together with the note that it was deleted, as are those of a task without an experiment. A
record's key alone tells its root.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from det_contracts.events.searcher import TrialCreated
from services.kit.roots import Key, Roots, get_loaded, loaded_keys
from services.metrics.domain.state import NO_EXPERIMENT, State, finding_key, source_index_key

OF_EXPERIMENT, OF_TASK = "lines of experiment ", "lines of task "
"""Prefixes of the roots of sources. A trial's root is its number."""


def _root_of_trial(_: State, id: int) -> str:
    return str(id)


def _root_of_group(_: State, key: str) -> str:
    return key.partition("/")[0]


def _root_of_finding(_: State, key: str) -> str:
    return key.partition("#")[0]


def _root_of_source(_: State, key: str) -> str:
    experiment_id, task_id, _key = source_index_key(key)
    return f"{OF_TASK}{task_id}" if experiment_id == NO_EXPERIMENT else f"{OF_EXPERIMENT}{experiment_id}"


def _root_of_experiment(_: State, id: int) -> str:
    return f"{OF_EXPERIMENT}{id}"


def _members(state: State, root: str) -> Iterable[Key]:
    if not root.isdecimal():
        yield from (("sources", place[-1]) for place in state.sources_of.scan(*_source_prefix(root)))
        if root.startswith(OF_EXPERIMENT):
            yield from loaded_keys(state, int(root.removeprefix(OF_EXPERIMENT)), "gone")
        return
    id = int(root)
    yield from (("findings", finding_key(id, number)) for number in state.unrecorded(id))
    yield from (("groups", key) for key in state.groups_of.ids(id))
    yield from loaded_keys(state, id, "trials", "ended", "settled", "dropped")


def _source_prefix(root: str) -> tuple[Any, ...]:
    """Prefix of the places of a root's sources."""
    if root.startswith(OF_EXPERIMENT):
        return (int(root.removeprefix(OF_EXPERIMENT)),)
    return NO_EXPERIMENT, root.removeprefix(OF_TASK)


def _is_over(state: State, root: str) -> bool:
    if not root.isdecimal():
        # Nothing waits for them. Active ones change, and recently changed ones stay in memory.
        return True
    id = int(root)
    if state.unrecorded(id) or get_loaded(state.ended, id) is not None:
        return False
    return get_loaded(state.settled, id) is not None or _is_left_behind(state, id)


def _is_left_behind(state: State, id: int) -> bool:
    """Whether all there is of a trial are decisions about it.

    Those that were under way when it was deleted. Where they are folded before the reports that they are
    about, the first of these loads them again.
    """
    trial = get_loaded(state.trials, id)
    if trial is None:
        return get_loaded(state.dropped, id) is not None
    return bool(trial.decided == 0 < trial.stated)


def _index(state: State, keys: Collection[Key]) -> None:
    for table, key in keys:
        if table == "groups":
            state.groups_of.add(int(_root_of_group(state, key)), key)
        elif table == "sources":
            state.sources_of.add(*source_index_key(key))


def _unindex(state: State, keys: Collection[Key]) -> None:
    for table, key in keys:
        if table == "groups":
            state.groups_of.discard(int(_root_of_group(state, key)), key)
        elif table == "sources":
            state.sources_of.discard(*source_index_key(key))


ROOTS: Roots[State] = Roots(
    root_lookups={
        "trials": _root_of_trial,
        "ended": _root_of_trial,
        "settled": _root_of_trial,
        "dropped": _root_of_trial,
        "groups": _root_of_group,
        "findings": _root_of_finding,
        "sources": _root_of_source,
        "gone": _root_of_experiment,
    },
    members=_members,
    is_over=_is_over,
    index=_index,
    unindex=_unindex,
    creation_events={TrialCreated: lambda event: ("trials", event.trial_id)},
    reference_fields={"trial_id": "trials", "trial_ids": "trials", "source": "sources", "experiment": "gone"},
)
