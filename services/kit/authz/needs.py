"""What a request needs, by method and path, from the table of routes (`routes.py`)."""

from __future__ import annotations

from typing import NamedTuple

from services.kit.authz.permissions import Kind, Permission
from services.kit.authz.routes import ROUTES


class Row(NamedTuple):
    """What a route needs, on what kind of thing, and whether read-only tokens may call it."""

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
"""Per kind of thing, the path parameters that may name it."""


SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def _rows() -> dict[tuple[str, str], Row]:
    rows: dict[tuple[str, str], Row] = {}
    for (permission, kind), block in ROUTES.items():
        for line in filter(None, map(str.split, block.split("\n"))):
            methods, path, reads = line[0], line[1], line[2:] == ["reads"]
            for method in methods.split(","):
                route = method, path.replace("~", API, 1)
                if route in rows:
                    # Otherwise the second entry would silently win, perhaps the weaker one.
                    raise ValueError(f"{method} {path} has two rows in the permission table")
                rows[route] = Row(permission, kind, reads or method in SAFE)
    return rows


ROWS = _rows()
"""(method, path template) -> what the route needs, and on what kind of thing."""


def needed(method: str, template: str) -> Row:
    """Return what a route needs. Raises `LookupError` for a route without a row, which nobody may call."""
    try:
        return ROWS[method, template]
    except KeyError:
        raise LookupError(
            f"{method} {template} has no row in services/kit/authz/routes.py: say there who may ask for it"
        ) from None
