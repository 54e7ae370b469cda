"""Request bodies for sign-in, users, groups, roles and quotas."""

from __future__ import annotations

import re

import msgspec

from det_contracts.events.gateway import AgentUser, TokenScope
from det_contracts.problems import invalid
from services.rest_requests.body import Body, BoundedList, Long

_LIFESPAN = re.compile(r"([0-9]{1,6})([hd])")


class Login(Body):
    """POST /auth/login"""

    username: str
    password: str = ""
    is_hashed: bool = False


class TicketBody(Body):
    """POST /auth/oidc/token"""

    ticket: str
    verifier: str


class TokenBody(Body):
    """POST /tokens"""

    name: str = ""
    description: str = ""
    """Alternative to `name`."""
    scope: TokenScope = "all"
    lifespan: str = ""
    """A number followed by `h` (hours) or `d` (days). The default is 30 days."""
    user_id: Long = 0

    def days(self) -> float:
        """The token's lifespan in days. Raises `Refused`."""
        match = _LIFESPAN.fullmatch(self.lifespan or "30d")
        if match is None:
            raise invalid(f"lifespan: a number with 'h' or 'd' is expected, not '{self.lifespan[:40]}'")
        return int(match[1]) / (24 if match[2] == "h" else 1)


class AgentUserBody(Body):
    """A user's Unix account on the worker hosts."""

    agent_uid: Long = 0
    agent_gid: Long = 0
    agent_user: str = ""
    agent_group: str = ""


def agent_user(body: AgentUserBody | None) -> AgentUser | None:
    """Convert to the form used in events."""
    if body is None:
        return None
    return msgspec.convert(
        {"uid": body.agent_uid, "gid": body.agent_gid, "user": body.agent_user, "group": body.agent_group},
        AgentUser,
    )


class UserBody(Body):
    """PATCH /users/{id}: fields that are present are changed."""

    username: str | None = None
    admin: bool | None = None
    active: bool | None = None
    remote: bool | None = None
    display_name: str | None = None
    agent_user_group: AgentUserBody | None = None
    password: str | None = None
    is_hashed: bool = False


class UserCreation(Body):
    """POST /users"""

    user: UserBody
    password: str = ""
    is_hashed: bool = False


class SettingBody(Body):
    """One setting that a page stores for a user."""

    storage_path: str = ""
    key: str = ""
    value: str = ""


class SettingsBody(Body):
    """POST /users/setting: a list of settings, or a single one as sent by older pages."""

    settings: list[SettingBody] = []
    setting: SettingBody | None = None


class GroupBody(Body):
    """POST /groups, PUT /groups/{group_id}"""

    name: str | None = None
    add_users: BoundedList[Long] = []
    remove_users: BoundedList[Long] = []


class QuotaBody(Body):
    """PUT /quotas/{holder}"""

    slots: Long | None = None
    jobs: Long | None = None
    storage_bytes: Long | None = None


class GroupSearch(Body):
    """POST /groups/search"""

    user_id: Long = 0
    name: str = ""
    offset: Long = 0
    limit: Long = 0


class RoleSearch(Body):
    """POST /roles/search, POST /roles/search/by-assignability"""

    offset: Long = 0
    limit: Long = 0
    workspace_id: Long = 0


class RoleIds(Body):
    """POST /roles/search/by-ids"""

    role_ids: BoundedList[Long] = []


class RoleBody(Body):
    """A role, referenced by id."""

    role_id: Long


class GivenRole(Body):
    """A role assigned in a workspace or in the whole cluster."""

    role: RoleBody
    scope_workspace_id: Long = 0
    scope_cluster: bool = False


class UserRole(Body):
    """A role assigned to a user."""

    user_id: Long
    role_assignment: GivenRole


class GroupRole(Body):
    """A role assigned to a group."""

    group_id: Long
    role_assignment: GivenRole


class AssignmentsBody(Body):
    """POST /roles/add-assignments, POST /roles/remove-assignments"""

    user_role_assignments: BoundedList[UserRole] = []
    group_role_assignments: BoundedList[GroupRole] = []
