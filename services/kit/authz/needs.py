"""What a request needs, as the declaration of its route says (`services/web/routes.py`)."""

from __future__ import annotations

from typing import NamedTuple

from services.kit.authz.permissions import Kind, Permission

Needs = tuple[Permission, Kind]
"""What a route needs, and on what kind of thing.

The thing is the one named in the path (`PARAMETER` says by which parameter). Things named in a request body
are checked by the route itself and by the owner of the fact (`commands.py`).
"""


class Row(NamedTuple):
    """What a route needs, on what kind of thing, and whether read-only tokens may call it."""

    permission: Permission
    kind: Kind
    reads: bool


PARAMETER: dict[Kind, tuple[str, ...]] = {
    "user": ("user_id",),
    "workspace": ("id", "workspace_id"),
    "project": ("id",),
    "experiment": ("experiment_id",),
    "trial": ("trial_id",),
    "task": ("task_id", "id"),
    "page": ("task_id",),
    "run": ("allocation_id",),
    "checkpoint": ("uuid",),
    "model": ("name",),
    "template": ("name",),
}
"""Per kind of thing, the path parameters that may name it."""


SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that only read. A route of another method that only reads says so."""
