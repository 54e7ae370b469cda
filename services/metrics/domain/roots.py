"""Which records belong together, and leave memory once nothing more of them is expected.

A trial is a root, with everything remembered about its reports. The log line sources of an experiment are
another root, as are those of a task without an experiment. A record's key alone tells its root.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from det_contracts.events.searcher import TrialCreated
from services.kit.roots import Key, Roots, loaded, loaded_by
from services.metrics.domain.state import NO_EXPERIMENT, State, finding_key, source_place

OF_EXPERIMENT, OF_TASK = "lines of experiment ", "lines of task "
"""Prefixes of the roots of sources. A trial's root is its number."""


def _of_trial(_: State, id: int) -> str:
    return str(id)


def _of_group(_: State, key: str) -> str:
    return key.partition("/")[0]


def _of_finding(_: State, key: str) -> str:
    return key.partition("#")[0]


def _of_source(_: State, key: str) -> str:
    experiment_id, task_id, _key = source_place(key)
    return f"{OF_TASK}{task_id}" if experiment_id == NO_EXPERIMENT else f"{OF_EXPERIMENT}{experiment_id}"


def _members(state: State, root: str) -> Iterable[Key]:
    if not root.isdecimal():
        yield from (("sources", place[-1]) for place in state.sources_of.scan(*_sources_of(root)))
        return
    id = int(root)
    yield from (("findings", finding_key(id, number)) for number in state.unstated(id))
    yield from (("groups", key) for key in state.groups_of.ids(id))
    yield from loaded_by(state, id, "trials", "ended", "settled", "dropped")


def _sources_of(root: str) -> tuple[Any, ...]:
    """Prefix of the places of a root's sources."""
    if root.startswith(OF_EXPERIMENT):
        return (int(root.removeprefix(OF_EXPERIMENT)),)
    return NO_EXPERIMENT, root.removeprefix(OF_TASK)


def _is_over(state: State, root: str) -> bool:
    if not root.isdecimal():
        # Nothing waits for them. Active ones change, and recently changed ones stay in memory.
        return True
    id = int(root)
    return loaded(state.settled, id) is not None and not state.unstated(id)


def _index(state: State, keys: Collection[Key]) -> None:
    for table, key in keys:
        if table == "groups":
            state.groups_of.add(int(_of_group(state, key)), key)
        elif table == "sources":
            state.sources_of.add(*source_place(key))


def _unindex(state: State, keys: Collection[Key]) -> None:
    for table, key in keys:
        if table == "groups":
            state.groups_of.discard(int(_of_group(state, key)), key)
        elif table == "sources":
            state.sources_of.discard(*source_place(key))


ROOTS: Roots[State] = Roots(
    of={
        "trials": _of_trial,
        "ended": _of_trial,
        "settled": _of_trial,
        "dropped": _of_trial,
        "groups": _of_group,
        "findings": _of_finding,
        "sources": _of_source,
    },
    members=_members,
    is_over=_is_over,
    index=_index,
    unindex=_unindex,
    begins={TrialCreated: "trial_id"},
    named_by={"trial_id": "trials", "trial_ids": "trials", "source": "sources"},
)
