"""What the gateway decides: who may ask, with which templates, and where experiments are filed."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from det_contracts.codec import event


@event("gateway.session.closed", key="session_id")
class SessionClosed(msgspec.Struct, frozen=True):
    """Its token is refused from now on, by every replica: the user logged out, or it was revoked."""

    session_id: str
    user: str
    """Who asked for it."""
    reason: str


@event("gateway.session.opened", key="session_id")
class SessionOpened(msgspec.Struct, frozen=True, kw_only=True):
    """A user logged in. The session's token is signed by the gateway and stands nowhere."""

    session_id: str
    user_id: int
    opened_at: float
    """Seconds since the epoch, as for all times here."""
    until: float
    """When it ends unless it is used."""
    address: str
    """Where the user logged in from."""
    client: str
    """What the client said that it is."""
    reason: str


@event("gateway.session.renewed", key="session_id")
class SessionRenewed(msgspec.Struct, frozen=True):
    """A session is used, and so ends later."""

    session_id: str
    until: float
    reason: str


@event("gateway.session.forgotten", key="user_id")
class SessionsForgotten(msgspec.Struct, frozen=True):
    """Sessions of a user are over and shown no longer."""

    user_id: int
    session_ids: tuple[str, ...]
    floor: float
    """Sessions that were opened no later, and that nothing is known of, are refused."""
    reason: str


TokenScope = Literal["all", "read"]
"""What an API token may do: whatever its owner may, or look only."""


@event("gateway.token.created", key="token_id")
class AccessToken(msgspec.Struct, frozen=True, kw_only=True):
    """A user made an API token: a program that shows it acts for them."""

    token_id: str
    user_id: int
    name: str
    scope: TokenScope
    digest: str
    """SHA-256 of the token, hexadecimal; the token itself is shown once and kept nowhere."""
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
    """A named partial configuration is there, or has another content from now on."""

    template_id: str
    """Made of the name, which may hold what a subject may not."""
    name: str
    config: dict[str, Any]
    """In normal form."""
    workspace_id: int = 1
    reason: str


@event("gateway.template.removed", key="template_id")
class TemplateRemoved(msgspec.Struct, frozen=True, kw_only=True):
    """The template is gone; experiments that were submitted with it keep what it gave them."""

    template_id: str
    name: str
    reason: str


@event("gateway.allocation.served", key="allocation_id")
class Served(msgspec.Struct, frozen=True):
    """A task answers HTTP at an address that the gateway reaches."""

    allocation_id: str
    address: str
    """`host:port`."""
    reason: str
    account: str = ""
    """Of a shell: the name that one logs in by, which is who it runs as on its host."""


@event("gateway.allocation.gather_joined", key="allocation_id")
class GatherJoined(msgspec.Struct, frozen=True, kw_only=True):
    """A member of an allocation gave its share of an all-gather (scheduling spec, section 8.6).

    Shares are put together in the order of the log, `peers` of them at a time.
    """

    allocation_id: str
    request_id: str
    """Of the member's request; the same again is the same share."""
    peers: int
    data: Any
    """Any JSON."""
    reason: str


class Setting(msgspec.Struct, frozen=True):
    """A text that a page keeps for a user under a path and a key of its own."""

    storage_path: str
    key: str
    value: str


@event("gateway.user.settings_set", key="user_id")
class SettingsSet(msgspec.Struct, frozen=True):
    """What pages keep for a user, whole, in the order in which it was first kept."""

    user_id: int
    settings: tuple[Setting, ...]
    reason: str


class AgentUser(msgspec.Struct, frozen=True):
    """Who a user is on the hosts of workers."""

    uid: int
    gid: int
    user: str
    group: str


@event("gateway.user.set", key="user_id")
class UserSet(msgspec.Struct, frozen=True, kw_only=True):
    """A user is there, or is described so from now on; a password has an event of its own."""

    user_id: int
    username: str
    former: tuple[str, ...] = ()
    """Names that the user had before; what was done under them stays theirs."""
    admin: bool = False
    active: bool = True
    """May log in."""
    remote: bool = False
    """Logs in elsewhere; has no password here."""
    display_name: str = ""
    agent_user: AgentUser | None = None
    reason: str


@event("gateway.user.signed_in", key="user_id")
class SignedIn(msgspec.Struct, frozen=True, kw_only=True):
    """A user proved to a provider of identities who they are; from now on they are known by that, too."""

    user_id: int
    issuer: str
    """The provider."""
    subject: str
    """What the provider knows them by for ever."""
    username: str
    """What the provider calls them at present."""
    groups: tuple[str, ...] = ()
    """In which they are there, of those that mean something here."""
    reason: str


@event("gateway.user.password_set", key="user_id")
class PasswordSet(msgspec.Struct, frozen=True, kw_only=True):
    """A user's password is another one; sessions that were opened before end."""

    user_id: int
    salt: str
    """Hexadecimal, of scrypt; empty for Argon2id."""
    hashed: str
    """Argon2id in PHC's format, or scrypt, hexadecimal, of what clients send; empty for no password."""
    reason: str


@event("gateway.user.password_renewed", key="user_id")
class PasswordRenewed(msgspec.Struct, frozen=True, kw_only=True):
    """The same password is kept at today's cost; sessions go on."""

    user_id: int
    hashed: str
    """As in `PasswordSet`."""
    reason: str


@event("gateway.group.set", key="group_id")
class GroupSet(msgspec.Struct, frozen=True, kw_only=True):
    """A group of users is there, or has this name and these members from now on."""

    group_id: int
    name: str
    members: tuple[int, ...]
    """Users, ascending."""
    reason: str


@event("gateway.group.removed", key="group_id")
class GroupRemoved(msgspec.Struct, frozen=True):
    """A group is gone; its id is not given again."""

    group_id: int
    reason: str


class Grant(msgspec.Struct, frozen=True, order=True):
    """A role in a workspace, or in the whole cluster."""

    role: str
    workspace_id: int = 0
    """0: the whole cluster."""


@event("gateway.roles.set", key="holder")
class RolesSet(msgspec.Struct, frozen=True):
    """Who holds which roles from now on: all of them. That a user is an administrator stands in `UserSet`."""

    holder: str
    """`user-<id>` or `group-<id>`."""
    grants: tuple[Grant, ...]
    reason: str


AuthzMode = Literal["basic", "rbac"]
"""Whether owners and administrators decide who may do what, or roles."""


@event("gateway.authz.set", key="scope")
class AuthzSet(msgspec.Struct, frozen=True):
    """From now on rights are judged so, by everybody who judges."""

    mode: AuthzMode
    reason: str
    scope: Literal["cluster"] = "cluster"


@event("gateway.quota.set", key="holder")
class QuotaSet(msgspec.Struct, frozen=True, kw_only=True):
    """How much a user, the members of a group together, or a workspace may have from now on: all of it.

    Scheduler, searcher and checkpoints listen. None is no limit; with none at all there is no quota.
    """

    holder: str
    """`user-<id>`, `group-<id>` or `workspace-<id>`."""
    slots: int | None = None
    """Slots that are held at once."""
    jobs: int | None = None
    """Experiments and tasks that have not ended."""
    storage_bytes: int | None = None
    """Of checkpoints that the registry knows and that were not deleted."""
    reason: str


@event("gateway.pool.bound", key="pool")
class PoolBound(msgspec.Struct, frozen=True, kw_only=True):
    """Only these workspaces may submit to a resource pool from now on; with none, all may.

    Searcher and scheduler listen, and refuse what comes from elsewhere. What was submitted before stays.
    """

    pool: str
    workspaces: tuple[int, ...]
    """Ascending."""
    reason: str


@event("gateway.decisions.retried", key="owner")
class DecisionsRetried(msgspec.Struct, frozen=True, kw_only=True):
    """An operator wants an owner to look once more at the records about which it could decide nothing.

    All replicas of that owner listen. It changes no record: whatever they wait for is decided then, or they
    are parked again with the reason of that day.
    """

    owner: str
    """As `searcher`."""
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
    """A workspace is there, or is described so from now on."""

    workspace_id: int
    name: str
    owner: str
    archived: bool = False
    pinned_by: tuple[str, ...] = ()
    """Users who want to see it first."""
    checkpoint_storage: dict[str, Any] | None = None
    """Of its experiments that name none; keys in it may be sealed."""
    agent_user: AgentUser | None = None
    """Who its tasks run as on the hosts of workers, whoever starts them."""
    default_compute_pool: str = ""
    """Where what names no resource pool and wants slots goes; empty: the cluster's."""
    default_aux_pool: str = ""
    """The same for what wants no slots."""
    reason: str


@event("gateway.workspace.removed", key="workspace_id")
class WorkspaceRemoved(msgspec.Struct, frozen=True):
    """An empty workspace is gone."""

    workspace_id: int
    reason: str


class Note(msgspec.Struct, frozen=True):
    """A text that belongs to a project."""

    name: str
    contents: str


@event("gateway.project.set", key="project_id")
class ProjectSet(msgspec.Struct, frozen=True, kw_only=True):
    """A project is there, or is described so from now on."""

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
    """A project without experiments is gone."""

    project_id: int
    reason: str


@event("gateway.experiment.moved", key="experiment_id")
class ExperimentMoved(msgspec.Struct, frozen=True):
    """An experiment is filed under another project."""

    experiment_id: int
    project_id: int
    reason: str


@event("gateway.creation.kept", key="request_id")
class CreationKept(msgspec.Struct, frozen=True):
    """Something was made for a request with an `Idempotency-Key`; the same request again leads to it."""

    request_id: str
    """Made of who asked and of the key."""
    key: str
    digest: str
    """Of all that was asked for; another request with the same key is refused."""
    value: Any
    """What the command was answered: the id of what was made."""
    reason: str
