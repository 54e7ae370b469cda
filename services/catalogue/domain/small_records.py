"""Records within those of workers and runs."""

from __future__ import annotations

import msgspec


class Switch(msgspec.Struct, frozen=True):
    """Whether a worker or slot accepts work, as set by a person."""

    enabled: bool = True
    draining: bool = False


class TaskOwner(msgspec.Struct, frozen=True):
    """Whose a user's task was, once the task itself is forgotten."""

    user: str
    workspace_id: int
