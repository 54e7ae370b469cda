"""Groups of users (REST spec, section 2)."""

from __future__ import annotations

from typing import Any

from services.catalogue.domain import State
from services.people import groups, users
from services.rest_routes.present.user import user


def summary(state: State, id: int) -> dict[str, Any]:
    """A group as listed."""
    group = groups.by_id(state, id)
    return {"group": {"groupId": id, "name": group.name}, "numMembers": len(group.members)}


def details(state: State, id: int) -> dict[str, Any]:
    """A group with its members. Raises `Refused` (not found)."""
    group = groups.by_id(state, id)
    members = [user(users.by_id(state, member)) for member in group.members]
    return {"groupId": id, "name": group.name, "users": members}
