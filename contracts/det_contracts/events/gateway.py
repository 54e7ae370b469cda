"""Decisions of the gateway: users, sessions, rights, templates, and the organization of experiments."""

from __future__ import annotations

from typing import Any, Literal

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


@event("gateway.template.set", key="template_id")
class TemplateSet(msgspec.Struct, frozen=True, kw_only=True):
    """A named partial configuration was created or changed."""

    template_id: str
    """Derived from the name, which may contain characters that are invalid in a subject."""
    name: str
    config: dict[str, Any]
    """In normal form."""
    workspace_id: int = 1
    reason: str


@event("gateway.template.removed", key="template_id")
class TemplateRemoved(msgspec.Struct, frozen=True, kw_only=True):
    """The template was removed. Experiments submitted with it keep what they got from it."""

    template_id: str
    name: str
    reason: str


@event("gateway.allocation.served", key="allocation_id")
class Served(msgspec.Struct, frozen=True):
    """A task serves HTTP at an address that the gateway can reach."""

    allocation_id: str
    address: str
    """`host:port`."""
    reason: str
    account: str = ""
    """For a shell: the login name, which is the host user it runs as."""


@event("gateway.allocation.gather_joined", key="allocation_id")
class GatherJoined(msgspec.Struct, frozen=True, kw_only=True):
    """A member of an allocation contributed to an all-gather (scheduling spec, section 8.6).

    Contributions are combined in log order, `peers` of them at a time.
    """

    allocation_id: str
    request_id: str
    """Id of the member's request. A repetition is the same contribution."""
    peers: int
    data: Any
    """Arbitrary JSON."""
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


class Grant(msgspec.Struct, frozen=True, order=True):
    """A role in a workspace or in the whole cluster."""

    role: str
    workspace_id: int = 0
    """0 means the whole cluster."""


@event("gateway.roles.set", key="holder")
class RolesSet(msgspec.Struct, frozen=True):
    """The complete set of a holder's roles. Whether a user is an administrator is in `UserSet`."""

    holder: str
    """`user-<id>` or `group-<id>`."""
    grants: tuple[Grant, ...]
    reason: str


AuthzMode = Literal["basic", "rbac"]
"""Whether rights are decided by ownership and administrators, or by roles."""


@event("gateway.authz.set", key="scope")
class AuthzSet(msgspec.Struct, frozen=True):
    """The way in which rights are decided has changed, for the whole cluster."""

    mode: AuthzMode
    reason: str
    scope: Literal["cluster"] = "cluster"


@event("gateway.quota.set", key="holder")
class QuotaSet(msgspec.Struct, frozen=True, kw_only=True):
    """The complete limits of a user, of a group's members together, or of a workspace.

    Scheduler, searcher and checkpoints listen. None means no limit; without any limit there is no quota.
    """

    holder: str
    """`user-<id>`, `group-<id>` or `workspace-<id>`."""
    slots: int | None = None
    """Slots held at the same time."""
    jobs: int | None = None
    """Experiments and tasks that have not ended."""
    storage_bytes: int | None = None
    """Size of registered checkpoints that are not deleted."""
    reason: str


@event("gateway.pool.bound", key="pool")
class PoolBound(msgspec.Struct, frozen=True, kw_only=True):
    """From now on only these workspaces may submit to a resource pool; if empty, all may.

    Searcher and scheduler listen and refuse other submissions. Earlier submissions are unaffected.
    """

    pool: str
    workspaces: tuple[int, ...]
    """Ascending."""
    reason: str


@event("gateway.decisions.retried", key="owner")
class DecisionsRetried(msgspec.Struct, frozen=True, kw_only=True):
    """An operator wants an owner to retry the records that it could not decide about.

    All replicas of that owner listen. It changes no record: the records are decided now, or parked again with
    the current reason.
    """

    owner: str
    """For example `searcher`."""
    reason: str


class SkippedEvent(msgspec.Struct, frozen=True):
    """The place of an event that an owner does not fold."""

    stream: str
    position: int


@event("gateway.event.skipped", key="owner")
class EventSkipped(msgspec.Struct, frozen=True, kw_only=True):
    """An administrator has an owner skip an event that it cannot fold, which stopped it.

    All replicas of that owner listen, and each looks for the newest one before it folds anything. The event
    has no effect on that owner's state, even when that is rebuilt from the log; other owners fold it.
    """

    owner: str
    """For example `searcher`."""
    stream: str
    position: int
    subject: str
    """Subject of the skipped event, which says what it is about."""
    error: str
    """Why it could not be folded."""
    skipped: tuple[SkippedEvent, ...]
    """Everything that this owner skips, this event included."""
    reason: str
    """Who asked for it, and why."""


@event("gateway.rebuild.asked", key="owner")
class RebuildAsked(msgspec.Struct, frozen=True, kw_only=True):
    """An administrator has an owner's database rebuilt from the log.

    All replicas of that owner listen. The one that saves deletes what the database holds, and all start
    again. It changes no record. A database that was begun after this event was stated is not rebuilt for it.
    """

    owner: str
    """For example `searcher`."""
    reason: str


@event("gateway.logging.set", key="part")
class LoggingSet(msgspec.Struct, frozen=True, kw_only=True):
    """An administrator has the services print their own logs otherwise from now on.

    Every process that folds the log listens, and looks for the newest one of each part when it starts. It
    changes no record.
    """

    part: Literal["level", "color"]
    value: str
    """A level as DEBUG, INFO, WARNING or ERROR; `on` or `off` for colors."""
    reason: str


@event("gateway.workspace.set", key="workspace_id")
class WorkspaceSet(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace was created or changed."""

    workspace_id: int
    name: str
    owner: str
    archived: bool = False
    pinned_by: tuple[str, ...] = ()
    """Users who pinned it."""
    checkpoint_storage: dict[str, Any] | None = None
    """Storage for its experiments that name none. Keys in it may be encrypted."""
    agent_user: AgentUser | None = None
    """Host user that its tasks run as, regardless of who starts them."""
    default_compute_pool: str = ""
    """Pool for tasks that need slots and name no pool; empty means the cluster's default."""
    default_aux_pool: str = ""
    """The same for tasks without slots."""
    reason: str


@event("gateway.workspace.removed", key="workspace_id")
class WorkspaceRemoved(msgspec.Struct, frozen=True):
    """An empty workspace was removed."""

    workspace_id: int
    reason: str


class Note(msgspec.Struct, frozen=True):
    """A text that belongs to a project."""

    name: str
    contents: str


@event("gateway.project.set", key="project_id")
class ProjectSet(msgspec.Struct, frozen=True, kw_only=True):
    """A project was created or changed."""

    project_id: int
    workspace_id: int
    name: str
    owner: str
    description: str = ""
    archived: bool = False
    notes: tuple[Note, ...] = ()
    reason: str


@event("gateway.project.removed", key="project_id")
class ProjectRemoved(msgspec.Struct, frozen=True):
    """A project without experiments was removed."""

    project_id: int
    reason: str


@event("gateway.experiment.moved", key="experiment_id")
class ExperimentMoved(msgspec.Struct, frozen=True):
    """An experiment was moved to another project."""

    experiment_id: int
    project_id: int
    reason: str


@event("gateway.creation.kept", key="request_id")
class CreationKept(msgspec.Struct, frozen=True):
    """Something was created for a request with an `Idempotency-Key`. Repeated requests return it."""

    request_id: str
    """Derived from the user and the key."""
    key: str
    digest: str
    """Digest of the complete request. A different request with the same key is refused."""
    value: Any
    """The answer to the command: the id of the created object."""
    reason: str
