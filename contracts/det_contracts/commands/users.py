"""To the gateway: users, groups, roles and quotas."""

from __future__ import annotations

import msgspec

from det_contracts.creation import Creation
from det_contracts.events.gateway import AgentUser, AuthzMode, Grant, Setting


class Password(msgspec.Struct, frozen=True):
    """A password as it is kept; both fields are empty for the empty password.

    Argon2id in PHC's format in `hashed` alone; before that it was scrypt with a salt, both hexadecimal.
    """

    salt: str = ""
    hashed: str = ""


class SetUser(Creation, frozen=True, kw_only=True, tag="set_user"):
    """To the gateway: make a user, without an id, or change what is given of one. `value`: its id."""

    user_id: int | None = None
    username: str | msgspec.UnsetType = msgspec.UNSET
    admin: bool | msgspec.UnsetType = msgspec.UNSET
    active: bool | msgspec.UnsetType = msgspec.UNSET
    remote: bool | msgspec.UnsetType = msgspec.UNSET
    display_name: str | msgspec.UnsetType = msgspec.UNSET
    agent_user: AgentUser | msgspec.UnsetType | None = msgspec.UNSET
    password: Password | None = None
    user: str


class SetPassword(msgspec.Struct, frozen=True, kw_only=True, tag="set_password"):
    """To the gateway: give a user another password."""

    user_id: int
    password: Password
    user: str


class SetFirstPassword(msgspec.Struct, frozen=True, kw_only=True, tag="set_first_password"):
    """To the gateway: give a user who has no password the one of its settings; who has one keeps it."""

    user_id: int
    password: Password


class RenewPassword(msgspec.Struct, frozen=True, kw_only=True, tag="renew_password"):
    """To the gateway: keep the same password at today's cost; another one that was set meanwhile stays."""

    user_id: int
    before: Password
    password: Password


class KeepSettings(msgspec.Struct, frozen=True, kw_only=True, tag="keep_settings"):
    """To the gateway: keep these for a user, over older ones of the same path and key."""

    user_id: int
    settings: tuple[Setting, ...]
    forget: bool = False
    """Forget all others."""
    user: str


class SetGroup(Creation, frozen=True, kw_only=True, tag="set_group"):
    """To the gateway: make a group, without an id, or change what is given of one. `value`: its id."""

    group_id: int | None = None
    name: str | msgspec.UnsetType = msgspec.UNSET
    add: tuple[int, ...] = ()
    """Users who are to be members."""
    remove: tuple[int, ...] = ()
    user: str


class RemoveGroup(msgspec.Struct, frozen=True, kw_only=True, tag="remove_group"):
    """To the gateway: forget a group, and the roles that were given to it."""

    group_id: int
    user: str


class SetQuota(msgspec.Struct, frozen=True, kw_only=True, tag="set_quota"):
    """To the gateway: limit what a holder may have; None is no limit, and none at all is no quota."""

    holder: str
    """As in `gateway.quota.set`."""
    slots: int | None = None
    jobs: int | None = None
    storage_bytes: int | None = None
    user: str


class Assignment(msgspec.Struct, frozen=True):
    """A role for somebody."""

    holder: str
    """`user-<id>` or `group-<id>`."""
    grant: Grant


class AssignRoles(msgspec.Struct, frozen=True, kw_only=True, tag="assign_roles"):
    """To the gateway: give roles and take them back; all of it or nothing."""

    add: tuple[Assignment, ...] = ()
    remove: tuple[Assignment, ...] = ()
    user: str


class SetAuthz(msgspec.Struct, frozen=True, kw_only=True, tag="set_authz"):
    """To the gateway's own log, at its start: how rights are judged, according to its settings."""

    mode: AuthzMode
