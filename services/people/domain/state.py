"""Records of people, workspaces and projects. All are frozen: an event replaces a record.

Times are seconds since the epoch, UTC, as in the log's envelopes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from det_contracts.commands import Password
from det_contracts.events.gateway import (
    AccessToken,
    AgentUser,
    EventSkipped,
    ProjectSet,
    Setting,
    WorkspaceSet,
)
from services.kit.authz.roles import Roles
from services.kit.idempotency import RequestResult
from services.kit.pool_bindings import Bindings
from services.kit.quotas.records import Quotas
from services.kit.rules import derived
from services.kit.sorted_keys import SortedKeys

MAX_RECENT_PROJECTS = 20


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A user account."""

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
    """When the password was set. Sessions from before are refused."""
    changed_at: float = 0.0


class KnownAs(msgspec.Struct, frozen=True):
    """A user's identity at an identity provider."""

    issuer: str
    subject: str
    groups: tuple[str, ...] = ()
    """The user's groups at their last sign-in."""


class Kept(msgspec.Struct, frozen=True):
    """The settings of pages stored for a user."""

    settings: tuple[Setting, ...]


class RecentProjects(msgspec.Struct, frozen=True):
    """The projects that a user opened last."""

    ids: tuple[int, ...]
    """Newest first, at most `MAX_RECENT_PROJECTS`. Some may have been deleted, or hidden from the user."""


class ClosedSession(msgspec.Struct, frozen=True):
    """A closed session, kept until its token expires."""

    user: str
    at: float = 0.0


class OpenSession(msgspec.Struct, frozen=True, kw_only=True):
    """A login session, kept until it is forgotten."""

    user_id: int
    opened_at: float
    until: float
    """When the session ends unless it is used."""
    token_until: float
    """When its token expires. A closed session must be remembered until then."""
    address: str
    client: str
    closed_at: float | None = None

    @property
    def forgettable_from(self) -> float:
        """The time from which it may be forgotten."""
        return self.token_until if self.closed_at is not None else max(self.until, self.token_until)


class SessionFloor(msgspec.Struct, frozen=True):
    """Unknown sessions of a user that were opened at or before this time are refused."""

    at: float


class Template(msgspec.Struct, frozen=True):
    """A named partial configuration that supplies defaults for submissions."""

    name: str
    config: dict[str, Any]
    workspace_id: int = 1


class Highest(msgspec.Struct, frozen=True):
    """The highest id given out."""

    id: int = 0


@dataclass
class People(Roles, Quotas, Bindings):
    """The folded state of users, their credentials, and where things are filed."""

    sessions: dict[str, ClosedSession] = field(default_factory=dict)
    """Closed sessions whose opening is unknown, because earlier versions did not record it."""
    open_sessions: dict[str, OpenSession] = field(default_factory=dict)
    """Opened sessions, closed or not, until they are forgotten."""
    session_floors: dict[int, SessionFloor] = field(default_factory=dict)
    """By user id."""
    tokens: dict[str, AccessToken] = field(default_factory=dict)
    """API tokens that were not revoked, by id."""
    templates: dict[str, Template] = field(default_factory=dict)
    """By the id derived from the name."""
    users: dict[int, User] = field(default_factory=dict)
    """Users that were created or changed; see `services.people.users`."""
    identities: dict[int, KnownAs] = field(default_factory=dict)
    """By user id."""
    settings: dict[int, Kept] = field(default_factory=dict)
    """By user id."""
    recent_projects: dict[int, RecentProjects] = field(default_factory=dict)
    """By user id."""
    workspaces: dict[int, WorkspaceSet] = field(default_factory=dict)
    """Workspaces that were created or changed; see `services.people.workspace_records`."""
    projects: dict[int, ProjectSet] = field(default_factory=dict)
    creations: dict[str, RequestResult] = field(default_factory=dict)
    """Creations of all owners, by request id."""
    highest: dict[str, Highest] = field(default_factory=dict)
    """By "users", "groups", "workspaces" and "projects"."""
    skips: dict[str, EventSkipped] = field(default_factory=dict)
    """The newest decision about what an owner skips, by owner."""

    made_at: SortedKeys = derived()  # noqa: RUF009
    """(time, request id) of every creation."""
    closed_at: SortedKeys = derived()  # noqa: RUF009
    """(time, session id) of every record in `sessions`."""
    project_of: dict[int, int] = derived()  # noqa: RUF009
    """The project of each experiment."""
    experiments_in: SortedKeys = derived()  # noqa: RUF009
    """(project, experiment)"""
    projects_in: SortedKeys = derived()  # noqa: RUF009
    """(workspace, project)"""
    models_in: SortedKeys = derived()  # noqa: RUF009
    """(workspace, model)"""
    workspaces_of: SortedKeys = derived()  # noqa: RUF009
    """(owner, workspace)"""
    projects_of: SortedKeys = derived()  # noqa: RUF009
    """(owner, project)"""
    templates_in: SortedKeys = derived()  # noqa: RUF009
    """(workspace, id of a template)"""
    sessions_of: SortedKeys = derived()  # noqa: RUF009
    """(user, time from which it may be forgotten, session)."""
    tokens_of: SortedKeys = derived()  # noqa: RUF009
    """(user, creation time, API token)."""
    token_digests: dict[str, str] = derived()  # noqa: RUF009
    """API token id by digest."""
    subjects: dict[tuple[str, str], int] = derived()  # noqa: RUF009
    """User id by provider and id at the provider."""
    user_names: dict[str, int] = derived()  # noqa: RUF009
    """User id by each current or former name."""
    administrators: SortedKeys = derived()  # noqa: RUF009
    """(user id) of every active administrator."""
    group_names: dict[str, int] = derived()  # noqa: RUF009
    """Group id by lowercase name."""
    granted_in: SortedKeys = derived()  # noqa: RUF009
    """(workspace id, or 0 for the cluster, holder of a role there)."""
    workspace_names: dict[str, int] = derived()  # noqa: RUF009
    """Workspace id by lowercase name."""
    project_names: dict[tuple[int, str], int] = derived()  # noqa: RUF009
    """Project id by workspace id and lowercase name."""

    def __post_init__(self) -> None:
        # Here and not above: that module imports this one for its records.
        from services.people.domain.indexed_records import build_indexes

        build_indexes(self)
