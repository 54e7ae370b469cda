"""Users (REST spec, section 2)."""

from __future__ import annotations

from typing import Any

from services.gateway.users import User


def user(one: User) -> dict[str, Any]:
    """A user."""
    return {
        "id": one.id,
        "username": one.username,
        "admin": one.admin,
        "active": True,
        "agentUserGroup": None,
        "displayName": "",
        "modifiedAt": "1970-01-01T00:00:00Z",
        "remote": False,
    }
