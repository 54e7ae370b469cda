"""Looks up in the catalogue what authorization needs: the caller, and a thing's owner and workspace.

See docs/rights.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pydantic import TypeAdapter

from det_contracts import ids
from det_contracts.events.gateway import Grant
from det_contracts.problems import Refused
from services.catalogue.domain import Allocation, Experiment, State
from services.kit.authz.access_check import AccessRequest, Person, Target, require
from services.kit.authz.permissions import Kind
from services.kit.authz.roles import grants_of, is_rbac
from services.people import tokens, users, workspace_records
from services.people.commands.templates import template_id
from services.people.domain import User

_INTEGER: TypeAdapter[int] = TypeAdapter(int)


class Directory:
    """The lookups of the authorization judge, in the catalogue."""

    def __init__(self, state: State) -> None:
        self._state = state

    @property
    def rbac(self) -> bool:
        """Whether roles decide."""
        return is_rbac(self._state)

    def person(self, name: str) -> Person | None:
        """The user who has or had this name."""
        user = users.by_any_name(self._state, name)
        return Person(user.id, user.username, user.admin, user.active) if user is not None else None

    def grants(self, user_id: int) -> Iterable[Grant]:
        """The roles that a user holds."""
        return grants_of(self._state, user_id)

    def target(self, kind: Kind, id: Any) -> Target | None:
        """The owner and workspace of a thing; None if it does not exist. Ids from a path are strings."""
        lookup = _LOOKUPS.get(kind)
        try:
            return lookup(self._state, id) if lookup is not None else None
        # What does not exist is answered like what is invisible, so that nobody learns from the answer which
        # ids exist.
        except (Refused, ValueError):
            return None


def _parse_id(id: Any) -> int:
    """Parse an id exactly as the routes do, so that both mean the same thing."""
    # The route reads ` 7` and `007` as 7; if they named nothing here, a thing that exists would be refused as
    # missing.
    return id if isinstance(id, int) else int(_INTEGER.validate_python(id))


def _user(state: State, id: Any) -> Target:
    return Target(users.by_id(state, _parse_id(id)).username)


def _workspace(state: State, id: Any) -> Target:
    workspace = workspace_records.workspace(state, _parse_id(id))
    return Target(workspace.owner, workspace.workspace_id)


def _project(state: State, id: Any) -> Target:
    project = workspace_records.project(state, _parse_id(id))
    return Target(project.owner, project.workspace_id)


def _experiment(state: State, id: Any) -> Target | None:
    experiment: Experiment | None = state.experiments.get(_parse_id(id))
    return Target(experiment.user, workspace_of(state, experiment)) if experiment is not None else None


def owner_of(state: State, allocation: Allocation) -> User | None:
    """The owner of a run, if active."""
    task, experiment = state.tasks.get(allocation.task_id), state.experiments.get(allocation.experiment_id)
    owned = task or experiment
    return users.active_user(state, owned.user) if owned is not None else None


def workspace_of(state: State, experiment: Experiment) -> int:
    """The workspace of an experiment."""
    return workspace_records.project(state, experiment.project_id).workspace_id


def _trial(state: State, id: Any) -> Target | None:
    trial = state.trials.get(_parse_id(id))
    return _experiment(state, trial.experiment_id) if trial is not None else None


def _task(state: State, id: str) -> Target | None:
    if id in state.tasks:
        return Target(state.tasks[id].user, state.tasks[id].workspace_id)
    if id in state.task_trials:
        return _trial(state, state.task_trials[id])
    # A deletion task is neither a trial's nor a user's, and is known by its only run.
    return _run(state, ids.allocation_id(id, 1))


def _run(state: State, id: str) -> Target | None:
    """Look up a run. Scripts outside the cluster may give the task's id instead."""
    allocation = state.allocations.get(id)
    if allocation is None or allocation.task_owner is not None:
        return _trial(state, state.task_trials[id]) if id in state.task_trials else None
    if allocation.task_id in state.tasks:
        return _task(state, allocation.task_id)
    return _experiment(state, allocation.experiment_id)


def _checkpoint(state: State, id: str) -> Target | None:
    checkpoint = state.checkpoints.get(id)
    return _experiment(state, checkpoint.experiment_id) if checkpoint is not None else None


def _model(state: State, id: Any) -> Target | None:
    """Look up a model by id or name. Model names are never numbers."""
    number = id if isinstance(id, int) else ids.parse_number(id)
    if number is not None:
        model = state.models.get(number)
    else:
        model = next((candidate for candidate in state.models.values() if candidate.name == id), None)
    return Target(model.user, model.workspace_id) if model is not None else None


def _template(state: State, name: str) -> Target | None:
    template = state.templates.get(template_id(name))
    # A template belongs to its workspace alone: no owner means that only roles there allow a change.
    return Target("", template.workspace_id) if template is not None else None


def _session(state: State, id: str) -> Target | None:
    session = state.open_sessions.get(id)
    return _user(state, session.user_id) if session is not None else None


def _token(state: State, id: str) -> Target | None:
    token = state.tokens.get(id)
    return _user(state, token.user_id) if token is not None else None


_LOOKUPS: dict[Kind, Callable[[State, Any], Target | None]] = {
    "user": _user,
    "session": _session,
    "token": _token,
    "workspace": _workspace,
    "project": _project,
    "experiment": _experiment,
    "trial": _trial,
    "task": _task,
    "page": _task,
    "run": _run,
    "checkpoint": _checkpoint,
    "model": _model,
    "template": _template,
}


def authorize(state: State, session: tokens.Session, *requests: AccessRequest) -> None:
    """Raise `Refused` (403, or 404 for what is invisible) unless the session may do all of this."""
    require(Directory(state), session.user, requests, script=session.allocation)


def is_authorized(state: State, session: tokens.Session, *requests: AccessRequest) -> bool:
    """Whether the session may do all of this."""
    try:
        authorize(state, session, *requests)
    except Refused:
        return False
    return True
