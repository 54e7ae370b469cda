"""Finds the owner of the objects that commands to the scheduler are about."""

from __future__ import annotations

from typing import Any

from det_contracts import ids
from services.kit.authz.access_check import Target
from services.kit.authz.people import Directory
from services.kit.authz.permissions import Kind
from services.scheduler.domain import State


def directory(state: State) -> Directory:
    """Return the directory that the authorization check uses."""

    def find(kind: Kind, id: Any) -> Target | int | None:
        if kind == "task" and id in state.tasks:
            return ids.owner_of_task(state.tasks[id].number)
        if kind == "run" and id in state.allocations:
            return state.allocations[id].experiment_id
        return None

    return Directory(state, find)
