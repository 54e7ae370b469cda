"""Users of the cluster (client spec, section 2)."""

from __future__ import annotations

from typing import Any

from determined.transport import identity
from determined.transport.rest import Session


class User:
    """A user; every change is seen in the object once the master has made it."""

    def __init__(self, session: Session, told: dict[str, Any]) -> None:
        self._session = session
        self._take(told)

    def __repr__(self) -> str:
        return f"User(user_id={self.user_id}, username={self.username!r})"

    def rename(self, new_username: str) -> None:
        """Give another name to log in with."""
        self._patch({"username": new_username})

    def activate(self) -> None:
        """Let the user log in."""
        self._patch({"active": True})

    def deactivate(self) -> None:
        """Keep the user from logging in; what is theirs stays."""
        self._patch({"active": False})

    def change_display_name(self, display_name: str) -> None:
        """Give another name to be shown."""
        self._patch({"displayName": display_name})

    def change_password(self, new_password: str) -> None:
        """Give another password."""
        self._session.post(f"/api/v1/users/{self.user_id}/password", identity.hashed(new_password))

    def link_with_agent(self, agent_gid: int, agent_uid: int, agent_group: str, agent_user: str) -> None:
        """Say who this user is on the hosts of agents."""
        told = {
            "agentGid": agent_gid,
            "agentUid": agent_uid,
            "agentGroup": agent_group,
            "agentUser": agent_user,
        }
        self._patch({"agentUserGroup": told})

    def _patch(self, changes: dict[str, Any]) -> None:
        self._take(self._session.patch(f"/api/v1/users/{self.user_id}", changes)["user"])

    def _take(self, told: dict[str, Any]) -> None:
        agent = told.get("agentUserGroup") or {}
        self.user_id = int(told["id"])
        self.username: str = told["username"]
        self.admin = bool(told.get("admin"))
        self.active = bool(told.get("active"))
        self.remote = bool(told.get("remote"))
        self.display_name: str = told.get("displayName") or ""
        self.agent_uid: int | None = agent.get("agentUid")
        self.agent_gid: int | None = agent.get("agentGid")
        self.agent_user: str | None = agent.get("agentUser")
        self.agent_group: str | None = agent.get("agentGroup")


def by_id(session: Session, user_id: int) -> User:
    """Raises `NotFoundException`."""
    return User(session, session.get(f"/api/v1/users/{user_id}")["user"])


def by_name(session: Session, username: str) -> User:
    """Raises `NotFoundException`."""
    return User(session, session.get(f"/api/v1/users/{identity.in_path(username)}/by-username")["user"])


def create(session: Session, username: str, admin: bool, password: str | None, remote: bool) -> User:
    """Make a user, who may log in at once."""
    user = {"username": username, "admin": admin, "active": True, "remote": remote}
    body = {"user": user, "password": identity.hashed(password or ""), "isHashed": True}
    return User(session, session.post("/api/v1/users", body)["user"])
