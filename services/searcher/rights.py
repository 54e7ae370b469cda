"""Finds the owner of the objects that commands to the searcher are about."""

from __future__ import annotations

from typing import Any

from services.kit.authz.access_check import Target
from services.kit.authz.people import Directory
from services.kit.authz.permissions import Kind
from services.searcher.domain import State


def directory(state: State) -> Directory:
    """Return the directory that the authorization check uses."""

    def find(kind: Kind, id: Any) -> Target | int | None:
        trial = state.trials.get(id) if kind == "trial" else None
        return trial.experiment_id if trial is not None else None

    return Directory(state, find)
