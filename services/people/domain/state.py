"""Records of people and of the places where they file things. All frozen: an event replaces a record.

Times are seconds since the epoch, UTC, as the log's envelopes give them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from det_contracts.commands import Password
from det_contracts.events.gateway import AccessToken, AgentUser, ProjectSet, Setting, WorkspaceSet
from services.kit.authz.roles import Roles
from services.kit.idempotency import Made
from services.kit.pool_bindings import Bindings
from services.kit.quotas.records import Quotas
from services.kit.rules import derived
from services.kit.sorted_keys import SortedKeys


class User(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who may log in."""

    id: int
    username: str
    former: tuple[str, ...] = ()
    admin: bool = False
    active: bool = True
    remote: bool = False
    display_name: str = ""
    agent_user: AgentUser | None = None
    password: Password = Password()
    password_at: float = 0.0
    """When it was set; sessions from before are refused."""
    changed_at: float = 0.0


class KnownAs(msgspec.Struct, frozen=True):
    """What a user is known by at a provider of identities."""

    issuer: str
    subject: str
    groups: tuple[str, ...] = ()
    """In which they were at their last sign-in."""


class Kept(msgspec.Struct, frozen=True):
    """What pages keep for a user."""

    settings: tuple[Setting, ...]


class ClosedSession(msgspec.Struct, frozen=True):
    """A session whose token is refused, until the token would have ended by itself."""

    user: str
    at: float = 0.0


class OpenSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session that somebody logged in for, until it is forgotten."""

    user_id: int
    opened_at: float
    until: float
    """When it ends unless it is used."""
    token_until: float
    """When its token would end by itself: until then it must be known that it was closed."""
    address: str
    client: str
    closed_at: float | None = None

    @property
    def known_until(self) -> float:
        """From when on it may be forgotten."""
        return self.token_until if self.closed_at is not None else max(self.until, self.token_until)


class SessionFloor(msgspec.Struct, frozen=True):
    """Sessions of a user that were opened no later, and that nothing is known of, are refused."""

    at: float


class Template(msgspec.Struct, frozen=True):
    """A named partial configuration, merged under what is submitted with it."""

    name: str
    config: dict[str, Any]
    workspace_id: int = 1


class Highest(msgspec.Struct, frozen=True):
    """The highest id that was given out."""

    id: int = 0


@dataclass
class People(Roles, Quotas, Bindings):
    """Who there is, what they are known by, and where things are filed."""

    sessions: dict[str, ClosedSession] = field(default_factory=dict)
    """Closed ones of which it is not known that they were opened, as versions before did not say so."""
    open_sessions: dict[str, OpenSession] = field(default_factory=dict)
    """Opened ones, closed or not, until they are forgotten."""
    session_floors: dict[int, SessionFloor] = field(default_factory=dict)
    """By user."""
    tokens: dict[str, AccessToken] = field(default_factory=dict)
    """API tokens that were not revoked, by id."""
    templates: dict[str, Template] = field(default_factory=dict)
    """By the id that is made of the name."""
    users: dict[int, User] = field(default_factory=dict)
    """Made or changed ones; see `services.people.users`."""
    identities: dict[int, KnownAs] = field(default_factory=dict)
    """By user."""
    settings: dict[int, Kept] = field(default_factory=dict)
    """By user."""
    workspaces: dict[int, WorkspaceSet] = field(default_factory=dict)
    """As for users; see `services.people.places`."""
    projects: dict[int, ProjectSet] = field(default_factory=dict)
    creations: dict[str, Made] = field(default_factory=dict)
    """Of all owners."""
    highest: dict[str, Highest] = field(default_factory=dict)
    """Of "users", "groups", "workspaces" and "projects"."""

    made_at: SortedKeys = derived()  # noqa: RUF009
    """(when, request id): every creation"""
    closed_at: SortedKeys = derived()  # noqa: RUF009
    """(when, session): every one of `sessions`"""
    project_of: dict[int, int] = derived()  # noqa: RUF009
    """Where each experiment is filed."""
    filed: SortedKeys = derived()  # noqa: RUF009
    """(project, experiment)"""
    projects_in: SortedKeys = derived()  # noqa: RUF009
    """(workspace, project)"""
    models_in: SortedKeys = derived()  # noqa: RUF009
    """(workspace, model)"""
    sessions_of: SortedKeys = derived()  # noqa: RUF009
    """(user, when it may be forgotten, session)"""
    tokens_of: SortedKeys = derived()  # noqa: RUF009
    """(user, when it was made, API token)"""
    token_digests: dict[str, str] = derived()  # noqa: RUF009
    """API token by its digest."""
    subjects: dict[tuple[str, str], int] = derived()  # noqa: RUF009
    """User by the provider that knows them, and by what it knows them."""
    user_names: dict[str, int] = derived()  # noqa: RUF009
    """User by each name that they have or had."""
    administrators: SortedKeys = derived()  # noqa: RUF009
    """(user who is one, and active)"""
    group_names: dict[str, int] = derived()  # noqa: RUF009
    """Group by its name in small letters."""
    granted_in: SortedKeys = derived()  # noqa: RUF009
    """(workspace, or 0 for the cluster, holder of a role there)"""
    workspace_names: dict[str, int] = derived()  # noqa: RUF009
    """Workspace by its name in small letters."""
    project_names: dict[tuple[int, str], int] = derived()  # noqa: RUF009
    """Project by its workspace and its name in small letters."""

    def __post_init__(self) -> None:
        from services.people.domain.keeping import index

        index(self)
