"""To the gateway: users, groups, roles and quotas."""

from __future__ import annotations

import msgspec

from det_contracts.creation import Creation
from det_contracts.events.gateway import AgentUser, AuthzMode, Grant, Setting
from det_contracts.ownership import command


class Password(msgspec.Struct, frozen=True):
    """A stored password; both fields are empty for the empty password.

    `hashed` alone is Argon2id in PHC format. Formerly it was scrypt with a salt, both hexadecimal.
    """

    salt: str = ""
    hashed: str = ""


@command("gateway")
class SetUser(Creation, frozen=True, kw_only=True, tag="set_user"):
    """To the gateway: create a user, if there is no id, or change the given fields. `value`: its id."""

    user_id: int | None = None
    username: str | msgspec.UnsetType = msgspec.UNSET
    admin: bool | msgspec.UnsetType = msgspec.UNSET
    active: bool | msgspec.UnsetType = msgspec.UNSET
    remote: bool | msgspec.UnsetType = msgspec.UNSET
    display_name: str | msgspec.UnsetType = msgspec.UNSET
    agent_user: AgentUser | msgspec.UnsetType | None = msgspec.UNSET
    password: Password | None = None
    user: str


@command("gateway")
class SetPassword(msgspec.Struct, frozen=True, kw_only=True, tag="set_password"):
    """To the gateway: change a user's password."""

    user_id: int
    password: Password
    user: str


@command("gateway")
class SetFirstPassword(msgspec.Struct, frozen=True, kw_only=True, tag="set_first_password"):
    """To the gateway: set the configured password for a user without one. An existing one is kept."""

    user_id: int
    password: Password


@command("gateway")
class ResetPassword(msgspec.Struct, frozen=True, kw_only=True, tag="reset_password"):
    """To the gateway: let a user sign in by a new password; sent from the cluster's host. `value`: their id.

    An account that is inactive, or that signs in at an identity provider only, is changed so that it can.
    """

    username: str
    password: Password
    admin: bool = False
    """Whether to make them an administrator, too."""
    by: str
    """The account on the host."""


@command("gateway")
class RenewPassword(msgspec.Struct, frozen=True, kw_only=True, tag="renew_password"):
    """To the gateway: rehash the same password with current parameters, unless it was changed meanwhile."""

    user_id: int
    before: Password
    password: Password


@command("gateway")
class KeepSettings(msgspec.Struct, frozen=True, kw_only=True, tag="keep_settings"):
    """To the gateway: store a user's settings, replacing those with the same path and key."""

    user_id: int
    settings: tuple[Setting, ...]
    forget: bool = False
    """Whether to remove all others."""
    user: str


@command("gateway")
class ViewProject(msgspec.Struct, frozen=True, kw_only=True, tag="view_project"):
    """To the gateway: remember that a user opened a project."""

    user_id: int
    project_id: int
    user: str


@command("gateway")
class SetGroup(Creation, frozen=True, kw_only=True, tag="set_group"):
    """To the gateway: create a group, if there is no id, or change the given fields. `value`: its id."""

    group_id: int | None = None
    name: str | msgspec.UnsetType = msgspec.UNSET
    add: tuple[int, ...] = ()
    """Users to add as members."""
    remove: tuple[int, ...] = ()
    user: str


@command("gateway")
class RemoveGroup(msgspec.Struct, frozen=True, kw_only=True, tag="remove_group"):
    """To the gateway: remove a group, and the roles assigned to it."""

    group_id: int
    user: str


@command("gateway")
class SetQuota(msgspec.Struct, frozen=True, kw_only=True, tag="set_quota"):
    """To the gateway: limit the resources of a holder. None means no limit; without any limit, no quota."""

    holder: str
    """As in `gateway.quota.set`."""
    slots: int | None = None
    jobs: int | None = None
    storage_bytes: int | None = None
    user: str


class Assignment(msgspec.Struct, frozen=True):
    """A role for a holder."""

    holder: str
    """`user-<id>` or `group-<id>`."""
    grant: Grant


@command("gateway")
class AssignRoles(msgspec.Struct, frozen=True, kw_only=True, tag="assign_roles"):
    """To the gateway: assign and unassign roles, all or nothing."""

    add: tuple[Assignment, ...] = ()
    remove: tuple[Assignment, ...] = ()
    user: str


@command("gateway")
class SetAuthz(msgspec.Struct, frozen=True, kw_only=True, tag="set_authz"):
    """To the gateway's own log, at startup: how rights are decided, according to its settings."""

    mode: AuthzMode
