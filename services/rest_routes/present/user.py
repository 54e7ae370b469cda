"""Users (REST spec, section 2)."""

from __future__ import annotations

from typing import Any

from det_contracts.events.gateway import AccessToken, AgentUser
from services.catalogue.api_values import format_time
from services.kit.authz.access_check import Access
from services.people.domain import OpenSession, User


def user(record: User) -> dict[str, Any]:
    """A user. Built-in ones that nobody changed have no time of their last change."""
    changed_at = max(record.changed_at, record.password_at)
    return {
        "id": record.id,
        "username": record.username,
        "admin": record.admin,
        "active": record.active,
        "agentUserGroup": agent_user(record.agent_user),
        "displayName": record.display_name,
        "modifiedAt": format_time(changed_at) if changed_at else None,
        "remote": record.remote,
    }


def session(id: str, record: OpenSession, *, is_current: bool) -> dict[str, Any]:
    """A login session."""
    return {
        "id": id,
        "userId": record.user_id,
        "openedAt": format_time(record.opened_at),
        "expiresAt": format_time(record.until),
        "address": record.address,
        "client": record.client,
        "current": is_current,
    }


def access_token(record: AccessToken) -> dict[str, Any]:
    """An API token's details, without the token itself."""
    return {
        "id": record.token_id,
        "userId": record.user_id,
        "name": record.name,
        "scope": record.scope,
        "createdAt": format_time(record.at),
        "expiry": format_time(record.until),
    }


def agent_user(record: AgentUser | None) -> dict[str, Any] | None:
    """The account that tasks run as on the worker hosts."""
    if record is None:
        return None
    return {
        "agentUid": record.uid,
        "agentGid": record.gid,
        "agentUser": record.user,
        "agentGroup": record.group,
    }


def access(allowed: Access) -> dict[str, Any]:
    """What a user may do: permissions of docs/rights.md."""
    spaces = {str(id): sorted(permissions) for id, permissions in allowed.workspaces.items()}
    everywhere, own = sorted(allowed.everywhere), sorted(allowed.own)
    return {"rbac": allowed.rbac, "everywhere": everywhere, "own": own, "workspaces": spaces}
