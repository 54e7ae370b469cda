"""What all experiments hold, kept beside the fold: their ids in order, and names such as labels.

Each is computed when it is first requested. After that, only changed experiments are looked at, so that a
request does not look at 100,000 of them.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from services.catalogue.domain import Experiment, State
from services.kit.rules import Key


class _BesideFold:
    """Follows the experiments of one state."""

    def __init__(self) -> None:
        self._state: State | None = None

    def on_records_changed(self, keys: Iterable[Key]) -> None:
        """Look at the experiments among these records again."""
        # Nobody has asked yet, and `_begin` will look at everything.
        if self._state is not None:
            for id in {int(id) for kind, id in keys if kind == "experiments"}:
                self._look_at(id, self._state.experiments.get(id))

    def on_reload(self) -> None:
        """Look at everything again, once somebody asks: the state is another object."""
        self._state = None

    def _follow(self, state: State) -> None:
        if state is not self._state:
            self._state = state
            self._begin(state)

    def _begin(self, state: State) -> None:
        raise NotImplementedError

    def _look_at(self, id: int, experiment: Experiment | None) -> None:
        """`experiment` is None if it was deleted."""
        raise NotImplementedError


class OrderedIds(_BesideFold):
    """The ids of all experiments in ascending order."""

    def __init__(self) -> None:
        super().__init__()
        self._ids: list[int] = []

    def all(self, state: State) -> list[int]:
        """A copy, which a thread may keep."""
        self._follow(state)
        return self._ids.copy()

    def _begin(self, state: State) -> None:
        self._ids = sorted(state.experiments)

    def _look_at(self, id: int, experiment: Experiment | None) -> None:
        place = bisect.bisect_left(self._ids, id)
        is_known = place < len(self._ids) and self._ids[place] == id
        if experiment is None and is_known:
            del self._ids[place]
        elif experiment is not None and not is_known:
            self._ids.insert(place, id)


@dataclass(slots=True)
class _Group:
    """Experiments of one project that hold the same names."""

    project_id: int
    names: tuple[str, ...]
    count: int = 0


class HeldNames(_BesideFold):
    """Names that experiments hold, and how many hold each.

    Experiments of a sweep hold the same ones, so that few groups stand for very many of them.
    """

    def __init__(self, names_of: Callable[[Experiment], Iterable[str]]) -> None:
        super().__init__()
        self._names_of = names_of
        self._groups: dict[tuple[int, tuple[str, ...]], _Group] = {}
        self._group_of: dict[int, _Group] = {}

    def count(self, state: State, includes_project: Callable[[int], bool]) -> Counter[str]:
        """How many experiments of these projects hold each name."""
        self._follow(state)
        used = Counter[str]()
        for group in self._groups.values():
            if includes_project(group.project_id):
                for name in group.names:
                    used[name] += group.count
        return used

    def _begin(self, state: State) -> None:
        self._groups, self._group_of = {}, {}
        for id, experiment in state.experiments.items():
            self._look_at(id, experiment)

    def _look_at(self, id: int, experiment: Experiment | None) -> None:
        if (left := self._group_of.pop(id, None)) is not None:
            left.count -= 1
            if not left.count:
                del self._groups[left.project_id, left.names]
        if experiment is not None:
            key = experiment.project_id, tuple(self._names_of(experiment))
            joined = self._group_of[id] = self._groups.setdefault(key, _Group(*key))
            joined.count += 1
