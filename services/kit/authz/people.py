"""The state about users and workspaces that an owner of facts folds to decide who may command it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from det_contracts import ids
from det_contracts.events import gateway, scheduler, searcher
from det_contracts.events.gateway import Grant
from det_contracts.problems import not_found
from services.kit.authz.access_check import Person, Target
from services.kit.authz.permissions import Kind
from services.kit.authz.roles import FOLDS as OF_ROLES
from services.kit.authz.roles import Roles, grants_of, is_rbac
from services.kit.folds import Fold, FoldOne, of_event
from services.kit.quotas.records import Quotas, quota_set
from services.kit.rules import Key

BUILT_IN = {"admin": Person(1, "admin", admin=True), "determined": Person(2, "determined")}
"""Users that exist from the beginning."""
FIRST = 1
NOWHERE = -1
"""The workspace of an unknown project. Only administrators have rights there."""


class Home(msgspec.Struct, frozen=True):
    """The owner of an experiment or independent task, and where it is filed."""

    owner: str
    project_id: int
    """0 for a task."""
    workspace_id: int = 0
    """0 for an experiment, which belongs to its project's workspace."""


class NameOf(msgspec.Struct, frozen=True):
    """The user who has or had a name."""

    user_id: int


class Filed(msgspec.Struct, frozen=True):
    """The workspace of a project."""

    workspace_id: int


class Called(msgspec.Struct, frozen=True):
    """The name of a workspace."""

    name: str


@dataclass
class People(Roles, Quotas):
    """Base class of the states of owners that users command."""

    people: dict[int, Person] = field(default_factory=dict)
    """Users that were created or changed, by user id."""
    people_names: dict[str, NameOf] = field(default_factory=dict)
    homes: dict[int, Home] = field(default_factory=dict)
    """By experiment id; tasks use the negative number that stands for them."""
    project_homes: dict[int, Filed] = field(default_factory=dict)
    workspaces_called: dict[int, Called] = field(default_factory=dict)
    """Names to show to users. The first workspace has its built-in name until it is renamed."""


P = TypeVar("P", bound=People)


class Directory:
    """Answers a judge's lookups from such a state."""

    def __init__(self, state: People, find: Callable[[Kind, Any], Target | int | None]) -> None:
        """`find` returns a thing of the service, or the `homes` key of its experiment or task."""
        self._state = state
        self._find = find

    @property
    def rbac(self) -> bool:
        """Whether access is decided by roles."""
        return is_rbac(self._state)

    def grants(self, user_id: int) -> Iterable[Grant]:
        """Return the roles that a user holds."""
        return grants_of(self._state, user_id)

    def person(self, name: str) -> Person | None:
        """Return the user who has or had the name."""
        named = self._state.people_names.get(name)
        return self._state.people.get(named.user_id) if named is not None else BUILT_IN.get(name)

    def target(self, kind: Kind, id: Any) -> Target | None:
        """Return the thing, or None if it does not exist."""
        if kind == "workspace":
            return Target("", id)
        if kind == "project":
            return Target("", workspace_of(self._state, id))
        target_or_id = id if kind == "experiment" else self._find(kind, id)
        if isinstance(target_or_id, Target):
            return target_or_id
        home = self._state.homes.get(target_or_id or 0)
        if home is None:
            return None
        return Target(home.owner, home.workspace_id or workspace_of(self._state, home.project_id))


def workspace_of(state: People, project_id: int) -> int:
    """Return a project's workspace. The first project exists from the beginning, in the first workspace."""
    filed = state.project_homes.get(project_id)
    return filed.workspace_id if filed is not None else FIRST if project_id == FIRST else NOWHERE


def check_project(state: People, project_id: int) -> None:
    """Raise `Refused` (404) for a project that was removed while a command for it was on its way."""
    if workspace_of(state, project_id) == NOWHERE:
        raise not_found("project", project_id)


def check_workspace(state: People, workspace_id: int) -> None:
    """The same for a workspace."""
    if workspace_id != FIRST and workspace_id not in state.workspaces_called:
        raise not_found("workspace", workspace_id)


def add_people_fold(evolve: Fold[P]) -> Fold[P]:
    """Return an owner's fold that also keeps users and places, folded first so that owners are known."""
    own = evolve.functions
    people = {kind: _both(of_event(fold), own.get(kind)) for kind, fold in _FOLDS.items()}
    return Fold({**own, **people})


def _both(first: FoldOne[P], second: FoldOne[P] | None) -> FoldOne[P]:
    if second is None:
        return first
    # The fold is a generator: consumed here, its changes have been made before `second` looks at them.
    return lambda state, recorded: [*first(state, recorded), *second(state, recorded)]


def _user_set(state: People, event: gateway.UserSet) -> Iterable[Key]:
    state.people[event.user_id] = Person(event.user_id, event.username, event.admin, event.active)
    yield "people", event.user_id
    for name in (event.username, *event.former):
        # What was made under a name stays with the first user who had it.
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


def _task_forgotten(state: People, event: scheduler.TaskForgotten) -> Iterable[Key]:
    id = ids.owner_of_task(event.number)
    if state.homes.pop(id, None) is not None:
        yield "homes", id


def _experiment_moved(state: People, event: gateway.ExperimentMoved) -> Iterable[Key]:
    home = state.homes.get(event.experiment_id)
    if home is not None:
        state.homes[event.experiment_id] = Home(home.owner, event.project_id)
        yield "homes", event.experiment_id


def _experiment_deleted(state: People, event: searcher.ExperimentDeleted) -> Iterable[Key]:
    if event.state == "DELETED" and state.homes.pop(event.experiment_id, None) is not None:
        yield "homes", event.experiment_id


def _project_set(state: People, event: gateway.ProjectSet) -> Iterable[Key]:
    state.project_homes[event.project_id] = Filed(event.workspace_id)
    yield "project_homes", event.project_id


def _project_removed(state: People, event: gateway.ProjectRemoved) -> Iterable[Key]:
    if state.project_homes.pop(event.project_id, None) is not None:
        yield "project_homes", event.project_id


def _workspace_set(state: People, event: gateway.WorkspaceSet) -> Iterable[Key]:
    state.workspaces_called[event.workspace_id] = Called(event.name)
    yield "workspaces_called", event.workspace_id


def _workspace_removed(state: People, event: gateway.WorkspaceRemoved) -> Iterable[Key]:
    if state.workspaces_called.pop(event.workspace_id, None) is not None:
        yield "workspaces_called", event.workspace_id


_FOLDS: dict[type, Callable[[Any, Any], Iterable[Key]]] = {
    **OF_ROLES,
    gateway.QuotaSet: quota_set,
    gateway.WorkspaceSet: _workspace_set,
    gateway.WorkspaceRemoved: _workspace_removed,
    gateway.UserSet: _user_set,
    searcher.ExperimentCreated: _experiment_created,
    scheduler.TaskSubmitted: _task_submitted,
    scheduler.TaskForgotten: _task_forgotten,
    gateway.ExperimentMoved: _experiment_moved,
    searcher.ExperimentDeleted: _experiment_deleted,
    gateway.ProjectSet: _project_set,
    gateway.ProjectRemoved: _project_removed,
}
