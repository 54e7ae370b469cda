"""What a request needs, by its method and path, as the table of routes says (`routes.py`)."""

from __future__ import annotations

from typing import NamedTuple

from services.kit.authz.permissions import Kind, Permission
from services.kit.authz.routes import ROUTES


class Row(NamedTuple):
    """What a route needs, of what kind of thing, and whether a token may ask that only reads."""

    permission: Permission
    kind: Kind
    reads: bool


API = "/api/v1"
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
"""Of the path: which one names the thing, by its kind."""


SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def _rows() -> dict[tuple[str, str], Row]:
    found: dict[tuple[str, str], Row] = {}
    for (permission, kind), block in ROUTES.items():
        for line in filter(None, map(str.split, block.split("\n"))):
            methods, path, reads = line[0], line[1], line[2:] == ["reads"]
            for method in methods.split(","):
                route = method, path.replace("~", API, 1)
                if route in found:
                    raise ValueError(f"{method} {path} stands twice in the permission table")
                found[route] = Row(permission, kind, reads or method in SAFE)
    return found


ROWS = _rows()
"""(method, path template) -> what the route needs, and of what kind of thing."""


def needed(method: str, template: str) -> Row:
    """What a route needs; raises `LookupError` for one without a row: nobody may ask for that."""
    try:
        return ROWS[method, template]
    except KeyError:
        raise LookupError(
            f"{method} {template} has no row in services/kit/authz/routes.py: say there who may ask for it"
        ) from None
