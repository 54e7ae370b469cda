"""Users (REST spec, section 2)."""

from __future__ import annotations

from typing import Any

from det_contracts.events.gateway import AgentUser
from services.gateway.domain import User
from services.gateway.present.values import instant


def user(one: User) -> dict[str, Any]:
    """A user."""
    return {
        "id": one.id,
        "username": one.username,
        "admin": one.admin,
        "active": one.active,
        "agentUserGroup": _agent_user(one.agent_user),
        "displayName": one.display_name,
        "modifiedAt": instant(max(one.changed_at, one.password_at)),
        "remote": one.remote,
    }


def _agent_user(one: AgentUser | None) -> dict[str, Any] | None:
    if one is None:
        return None
    return {"agentUid": one.uid, "agentGid": one.gid, "agentUser": one.user, "agentGroup": one.group}
