"""What a judge looks up in the catalogue: who asks, and whose the thing is (docs/rights.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import TypeAdapter

from det_contracts import ids
from det_contracts.problems import Refused
from services.gateway import places, tokens, users
from services.gateway.domain import Experiment, State
from services.kit.authz.judge import Person, Thing, Wish, require
from services.kit.authz.permissions import Kind

_INTEGER: TypeAdapter[int] = TypeAdapter(int)


class Directory:
    """What a judge looks up in the catalogue."""

    def __init__(self, state: State) -> None:
        self._state = state

    def person(self, name: str) -> Person | None:
        """Whoever has or had the name."""
        user = users.named(self._state, name)
        return Person(user.id, user.username, user.admin, user.active) if user is not None else None

    def thing(self, kind: Kind, id: Any) -> Thing | None:
        """None where there is no such thing. Of a path an id is a text."""
        find = _FINDS.get(kind)
        try:
            owner = find(self._state, id) if find is not None else None
        except (Refused, ValueError):
            return None
        return Thing(owner) if owner is not None else None


def _number(id: Any) -> int:
    """As routes read it: what they take for a number must be one here, too."""
    return id if isinstance(id, int) else int(_INTEGER.validate_python(id))


def _experiment(state: State, id: Any) -> str | None:
    known: Experiment | None = state.experiments.get(_number(id))
    return known.user if known is not None else None


def _trial(state: State, id: Any) -> str | None:
    known = state.trials.get(_number(id))
    return _experiment(state, known.experiment_id) if known is not None else None


def _task(state: State, id: str) -> str | None:
    if id in state.tasks:
        return state.tasks[id].user
    if id in state.task_trials:
        return _trial(state, state.task_trials[id])
    return _run(state, ids.allocation_id(id, 1))


def _run(state: State, id: str) -> str | None:
    """Of scripts outside of the cluster also by the task alone."""
    known = state.allocations.get(id)
    if known is None:
        return _trial(state, state.task_trials[id]) if id in state.task_trials else None
    own = state.tasks.get(known.task_id)
    return own.user if own is not None else _experiment(state, known.experiment_id)


def _checkpoint(state: State, id: str) -> str | None:
    known = state.checkpoints.get(id)
    return _experiment(state, known.experiment_id) if known is not None else None


def _model(state: State, id: Any) -> str | None:
    """By id, or by name: no model has a number for its name."""
    if isinstance(id, int) or id.isdecimal():
        known = state.models.get(int(id))
    else:
        known = next((one for one in state.models.values() if one.name == id), None)
    return known.user if known is not None else None


def _session(state: State, id: str) -> str | None:
    known = state.open_sessions.get(id)
    return users.by_id(state, known.user_id).username if known is not None else None


def _token(state: State, id: str) -> str | None:
    known = state.tokens.get(id)
    return users.by_id(state, known.user_id).username if known is not None else None


_FINDS: dict[Kind, Callable[[State, Any], str | None]] = {
    "user": lambda state, id: users.by_id(state, _number(id)).username,
    "session": _session,
    "token": _token,
    "workspace": lambda state, id: places.workspace(state, _number(id)).owner,
    "project": lambda state, id: places.project(state, _number(id)).owner,
    "experiment": _experiment,
    "trial": _trial,
    "task": _task,
    "page": _task,
    "run": _run,
    "checkpoint": _checkpoint,
    "model": _model,
}


def judge(state: State, session: tokens.Session, *wishes: Wish) -> None:
    """Raises `Refused` (403) unless the session may do all of it."""
    require(Directory(state), session.user, wishes, script=session.allocation)
