"""Users (REST spec, section 2)."""

from __future__ import annotations

from typing import Any

from det_contracts.events.gateway import AccessToken, AgentUser
from services.catalogue.api_values import instant
from services.people.domain import OpenSession, User


def user(one: User) -> dict[str, Any]:
    """A user."""
    return {
        "id": one.id,
        "username": one.username,
        "admin": one.admin,
        "active": one.active,
        "agentUserGroup": agent_user(one.agent_user),
        "displayName": one.display_name,
        "modifiedAt": instant(max(one.changed_at, one.password_at)),
        "remote": one.remote,
    }


def session(id: str, one: OpenSession, *, is_current: bool) -> dict[str, Any]:
    """A login session."""
    return {
        "id": id,
        "userId": one.user_id,
        "openedAt": instant(one.opened_at),
        "expiresAt": instant(one.until),
        "address": one.address,
        "client": one.client,
        "current": is_current,
    }


def access_token(one: AccessToken) -> dict[str, Any]:
    """An API token's details, without the token itself."""
    return {
        "id": one.token_id,
        "userId": one.user_id,
        "name": one.name,
        "scope": one.scope,
        "createdAt": instant(one.at),
        "expiry": instant(one.until),
    }


def agent_user(one: AgentUser | None) -> dict[str, Any] | None:
    """The account that tasks run as on the worker hosts."""
    if one is None:
        return None
    return {"agentUid": one.uid, "agentGid": one.gid, "agentUser": one.user, "agentGroup": one.group}
