"""What an owner of facts folds of people and places, to judge who may command it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from det_contracts import ids
from det_contracts.envelope import Recorded
from det_contracts.events import gateway, scheduler, searcher
from services.kit.authz.judge import Person, Thing
from services.kit.authz.permissions import Kind
from services.kit.rules import Key

BUILT_IN = {"admin": Person(1, "admin", admin=True), "determined": Person(2, "determined")}
"""Users that are there from the beginning."""


class Home(msgspec.Struct, frozen=True):
    """Whose an experiment is, or a task of somebody's own, and where it is filed."""

    owner: str
    project_id: int
    """0 for a task."""
    workspace_id: int = 0
    """0 for an experiment: that of its project."""


class NameOf(msgspec.Struct, frozen=True):
    """Who has or had a name."""

    user_id: int


@dataclass
class People:
    """Base of the states of owners that people command."""

    people: dict[int, Person] = field(default_factory=dict)
    """Made or changed ones."""
    people_names: dict[str, NameOf] = field(default_factory=dict)
    homes: dict[int, Home] = field(default_factory=dict)
    """By experiment; by the number below 0 that stands for it, of a task."""


P = TypeVar("P", bound=People)


class Directory:
    """What a judge looks up in such a state."""

    def __init__(self, state: People, find: Callable[[Kind, Any], Thing | int | None]) -> None:
        """`find`: a thing of the service, or the experiment or task (as in `homes`) that it is part of."""
        self._state = state
        self._find = find

    def person(self, name: str) -> Person | None:
        """Whoever has or had the name."""
        named = self._state.people_names.get(name)
        return self._state.people.get(named.user_id) if named is not None else BUILT_IN.get(name)

    def thing(self, kind: Kind, id: Any) -> Thing | None:
        """None where there is no such thing."""
        found = id if kind == "experiment" else self._find(kind, id)
        if isinstance(found, Thing):
            return found
        home = self._state.homes.get(found or 0)
        return Thing(home.owner) if home is not None else None


def with_people(
    evolve: Callable[[P, Recorded], Iterable[Key]],
) -> Callable[[P, Recorded], Iterable[Key]]:
    """An owner's fold that keeps people and places, too."""

    def both(state: P, recorded: Recorded) -> Iterable[Key]:
        fold = _FOLDS.get(type(recorded.event))
        own = evolve(state, recorded)
        return own if fold is None else [*own, *fold(state, recorded.event)]

    return both


def _user_set(state: People, event: gateway.UserSet) -> Iterable[Key]:
    state.people[event.user_id] = Person(event.user_id, event.username, event.admin, event.active)
    yield "people", event.user_id
    for name in (event.username, *event.former):
        if name not in state.people_names:
            state.people_names[name] = NameOf(event.user_id)
            yield "people_names", name


def _experiment_created(state: People, event: searcher.ExperimentCreated) -> Iterable[Key]:
    state.homes[event.experiment_id] = Home(event.user, event.project_id)
    yield "homes", event.experiment_id


def _task_submitted(state: People, event: scheduler.TaskSubmitted) -> Iterable[Key]:
    id = ids.owner_of_task(event.number)
    state.homes[id] = Home(event.user, 0, event.workspace_id)
    yield "homes", id


def _experiment_moved(state: People, event: gateway.ExperimentMoved) -> Iterable[Key]:
    known = state.homes.get(event.experiment_id)
    if known is not None:
        state.homes[event.experiment_id] = Home(known.owner, event.project_id)
        yield "homes", event.experiment_id


def _experiment_deleted(state: People, event: searcher.ExperimentDeleted) -> Iterable[Key]:
    if event.state == "DELETED" and state.homes.pop(event.experiment_id, None) is not None:
        yield "homes", event.experiment_id


_FOLDS: dict[type, Callable[[Any, Any], Iterable[Key]]] = {
    gateway.UserSet: _user_set,
    searcher.ExperimentCreated: _experiment_created,
    scheduler.TaskSubmitted: _task_submitted,
    gateway.ExperimentMoved: _experiment_moved,
    searcher.ExperimentDeleted: _experiment_deleted,
}
