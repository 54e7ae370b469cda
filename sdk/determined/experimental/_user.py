"""Users of the cluster (client spec, section 2)."""

from __future__ import annotations

from typing import Any

from determined.transport import identity
from determined.transport.rest import AnySession, Session, speaking


class User:
    """A user of the cluster. Changes appear in the object once the cluster has made them.

    Attributes:
        user_id: Id of the user.
        username: Login name.
        admin: Whether the user is an administrator.
        active: Whether the user may log in.
        remote: Whether the user logs in through the identity provider.
        display_name: Name shown to others.
        agent_uid: User id on the hosts of agents.
        agent_gid: Group id on the hosts of agents.
        agent_user: User name on the hosts of agents.
        agent_group: Group name on the hosts of agents.

    Example:
        ```python
        for user in client.list_users():
            if user.active and not user.remote:
                print(user.username, user.display_name)
        ```
    """

    def __init__(
        self,
        user_id: int,
        username: str,
        admin: bool,
        session: AnySession,
        active: bool = True,
        remote: bool = False,
        display_name: str | None = None,
        agent_uid: int | None = None,
        agent_gid: int | None = None,
        agent_user: str | None = None,
        agent_group: str | None = None,
    ) -> None:
        self._session = speaking(session)
        self.user_id, self.username, self.admin = user_id, username, admin
        self.active, self.remote, self.display_name = active, remote, display_name or ""
        self.agent_uid, self.agent_gid = agent_uid, agent_gid
        self.agent_user, self.agent_group = agent_user, agent_group

    def __repr__(self) -> str:
        return f"User(user_id={self.user_id}, username={self.username!r})"

    def rename(self, new_username: str) -> None:
        """Change the login name.

        Args:
            new_username: The new name.

        Example:
            ```python
            client.get_user_by_name("ann").rename("anna")
            ```
        """
        self._patch({"username": new_username})

    def activate(self) -> None:
        """Allow the user to log in.

        Example:
            ```python
            client.get_user_by_name("ann").activate()
            ```
        """
        self._patch({"active": True})

    def deactivate(self) -> None:
        """Prevent the user from logging in; their experiments and data are kept.

        Example:
            ```python
            client.get_user_by_name("ann").deactivate()
            ```
        """
        self._patch({"active": False})

    def change_display_name(self, display_name: str) -> None:
        """Change the displayed name.

        Args:
            display_name: The new name.

        Example:
            ```python
            client.whoami().change_display_name("Ann, Vision")
            ```
        """
        self._patch({"displayName": display_name})

    def change_password(self, new_password: str) -> None:
        """Change the password.

        Args:
            new_password: The new password.

        Example:
            ```python
            client.whoami().change_password(getpass.getpass())
            ```
        """
        self._session.post(f"/api/v1/users/{self.user_id}/password", identity.hashed(new_password))

    def link_with_agent(
        self,
        agent_uid: int | None = None,
        agent_gid: int | None = None,
        agent_user: str | None = None,
        agent_group: str | None = None,
    ) -> None:
        """Set the user's identity on the agents' hosts. Omitted values are not sent.

        Args:
            agent_uid: User id.
            agent_gid: Group id.
            agent_user: User name.
            agent_group: Group name.

        Example:
            ```python
            ann = client.get_user_by_name("ann")
            ann.link_with_agent(agent_uid=1001, agent_gid=100, agent_user="ann", agent_group="users")
            ```
        """
        fields = {
            "agentUid": agent_uid,
            "agentGid": agent_gid,
            "agentUser": agent_user,
            "agentGroup": agent_group,
        }
        self._patch({"agentUserGroup": {name: value for name, value in fields.items() if value is not None}})

    def _patch(self, changes: dict[str, Any]) -> None:
        answer = self._session.patch(f"/api/v1/users/{self.user_id}", changes)["user"]
        vars(self).update(vars(from_wire(self._session, answer)))


def from_wire(session: Session, answer: dict[str, Any]) -> User:
    """Create a user from its REST representation."""
    agent = answer.get("agentUserGroup") or {}
    return User(
        int(answer["id"]),
        answer["username"],
        bool(answer.get("admin")),
        session,
        bool(answer.get("active")),
        bool(answer.get("remote")),
        answer.get("displayName"),
        agent.get("agentUid"),
        agent.get("agentGid"),
        agent.get("agentUser"),
        agent.get("agentGroup"),
    )


def by_id(session: Session, user_id: int) -> User:
    """Raises `NotFoundException`."""
    return from_wire(session, session.get(f"/api/v1/users/{identity.in_path(str(user_id))}")["user"])


def by_name(session: Session, username: str) -> User:
    """Return a user. Raises `NotFoundException`."""
    return from_wire(session, session.get(f"/api/v1/users/{identity.in_path(username)}/by-username")["user"])


def create(session: Session, username: str, admin: bool, password: str | None, remote: bool) -> User:
    """Create a user, who can log in immediately."""
    user = {"username": username, "admin": admin, "active": True, "remote": remote}
    body = {"user": user, "password": identity.hashed(password or ""), "isHashed": True}
    return from_wire(session, session.post("/api/v1/users", body)["user"])
