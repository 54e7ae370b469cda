"""Records within those of workers and runs."""

from __future__ import annotations

import msgspec


class Switch(msgspec.Struct, frozen=True):
    """Whether a worker or slot accepts work, as set by a person."""

    enabled: bool = True
    draining: bool = False


class TaskOwner(msgspec.Struct, frozen=True):
    """Whose a task was, once the task itself is forgotten or deleted."""

    user: str
    workspace_id: int


class DeletedExperiment(msgspec.Struct, frozen=True):
    """Whose an experiment was, once it is deleted. Reports on past use count its runs for that owner."""

    user: str
    workspace_id: int
    labels: tuple[str, ...] = ()
