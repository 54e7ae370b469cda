"""Finds the owner of the objects that commands to the checkpoints service are about."""

from __future__ import annotations

from typing import Any

from services.checkpoints.domain import State
from services.kit.authz.access_check import Target
from services.kit.authz.people import Directory
from services.kit.authz.permissions import Kind


def directory(state: State) -> Directory:
    """Return the directory that the authorization check uses."""

    def find(kind: Kind, id: Any) -> Target | int | None:
        if kind == "checkpoint" and id in state.checkpoints:
            return state.checkpoints[id].experiment_id
        if kind == "model" and id in state.models:
            model = state.models[id].definition
            return Target(model.user, model.workspace_id)
        return None

    return Directory(state, find)
