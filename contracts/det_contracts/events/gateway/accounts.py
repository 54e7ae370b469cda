"""Users, their sessions, tokens, settings and groups."""

from __future__ import annotations

from typing import Literal

import msgspec

from det_contracts.codec import event


@event("gateway.session.closed", key="session_id")
class SessionClosed(msgspec.Struct, frozen=True):
    """All replicas refuse the session's token from now on: the user logged out, or it was revoked."""

    session_id: str
    user: str
    """Name of the user who requested it."""
    reason: str


@event("gateway.session.opened", key="session_id")
class SessionOpened(msgspec.Struct, frozen=True, kw_only=True):
    """A user logged in. The gateway signs the session's token, which is not stored anywhere."""

    session_id: str
    user_id: int
    opened_at: float
    """Seconds since the epoch, like all times here."""
    until: float
    """When it ends if it is not used."""
    address: str
    """Address that the user logged in from."""
    client: str
    """What the client identified itself as."""
    reason: str


@event("gateway.session.renewed", key="session_id")
class SessionRenewed(msgspec.Struct, frozen=True):
    """A session was used, and therefore ends later."""

    session_id: str
    until: float
    reason: str


@event("gateway.session.forgotten", key="user_id")
class SessionsForgotten(msgspec.Struct, frozen=True):
    """Sessions of a user have ended and are no longer listed."""

    user_id: int
    session_ids: tuple[str, ...]
    floor: float
    """Unknown sessions opened at or before this time are refused."""
    reason: str


TokenScope = Literal["all", "read"]
"""What an API token may do: everything its owner may, or only read."""


@event("gateway.token.created", key="token_id")
class AccessToken(msgspec.Struct, frozen=True, kw_only=True):
    """A user created an API token. A program that presents it acts on the user's behalf."""

    token_id: str
    user_id: int
    name: str
    scope: TokenScope
    digest: str
    """SHA-256 of the token, hexadecimal. The token itself is shown once and not stored."""
    at: float
    until: float
    reason: str


@event("gateway.token.revoked", key="token_id")
class TokenRevoked(msgspec.Struct, frozen=True):
    """An API token is refused from now on."""

    token_id: str
    reason: str


class Setting(msgspec.Struct, frozen=True):
    """A text that a page stores for a user under a path and a key."""

    storage_path: str
    key: str
    value: str


@event("gateway.user.settings_set", key="user_id")
class SettingsSet(msgspec.Struct, frozen=True):
    """All settings that pages store for a user, in the order in which they were first stored."""

    user_id: int
    settings: tuple[Setting, ...]
    reason: str


@event("gateway.user.project_viewed", key="user_id")
class ProjectViewed(msgspec.Struct, frozen=True):
    """A user opened a project, and not the one that they opened last."""

    user_id: int
    project_id: int
    reason: str


class AgentUser(msgspec.Struct, frozen=True):
    """A user's identity on the hosts of workers."""

    uid: int
    gid: int
    user: str
    group: str


@event("gateway.user.set", key="user_id")
class UserSet(msgspec.Struct, frozen=True, kw_only=True):
    """A user was created or changed. Passwords have their own event."""

    user_id: int
    username: str
    former: tuple[str, ...] = ()
    """The user's former names. What was done under them still belongs to the user."""
    admin: bool = False
    active: bool = True
    """Whether the user may log in."""
    remote: bool = False
    """Whether the user logs in elsewhere, without a password here."""
    display_name: str = ""
    agent_user: AgentUser | None = None
    reason: str


@event("gateway.user.signed_in", key="user_id")
class SignedIn(msgspec.Struct, frozen=True, kw_only=True):
    """A user signed in with an identity provider, and is from now on also identified by that account."""

    user_id: int
    issuer: str
    """The provider."""
    subject: str
    """The provider's permanent id for the user."""
    username: str
    """The provider's current name for the user."""
    groups: tuple[str, ...] = ()
    """The user's groups at the provider that are relevant here."""
    reason: str


@event("gateway.user.password_set", key="user_id")
class PasswordSet(msgspec.Struct, frozen=True, kw_only=True):
    """A user's password was changed. Earlier sessions end."""

    user_id: int
    salt: str
    """Hexadecimal, for scrypt; empty for Argon2id."""
    hashed: str
    """Argon2id in PHC format, or hexadecimal scrypt, of what clients send; empty if there is no password."""
    reason: str


@event("gateway.user.password_renewed", key="user_id")
class PasswordRenewed(msgspec.Struct, frozen=True, kw_only=True):
    """The same password was rehashed with current parameters. Sessions continue."""

    user_id: int
    hashed: str
    """As in `PasswordSet`."""
    reason: str


@event("gateway.group.set", key="group_id")
class GroupSet(msgspec.Struct, frozen=True, kw_only=True):
    """A group of users was created, or its name or members changed."""

    group_id: int
    name: str
    members: tuple[int, ...]
    """User ids, ascending."""
    reason: str


@event("gateway.group.removed", key="group_id")
class GroupRemoved(msgspec.Struct, frozen=True):
    """A group was removed. Its id is not reused."""

    group_id: int
    reason: str
