"""Whose the things are that people command the searcher about."""

from __future__ import annotations

from typing import Any

from services.kit.authz.judge import Thing
from services.kit.authz.people import Directory
from services.kit.authz.permissions import Kind
from services.searcher.domain import State


def directory(state: State) -> Directory:
    """What a judge looks up."""

    def find(kind: Kind, id: Any) -> Thing | int | None:
        trial = state.trials.get(id) if kind == "trial" else None
        return trial.experiment_id if trial is not None else None

    return Directory(state, find)
