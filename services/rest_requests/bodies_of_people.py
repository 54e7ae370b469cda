"""Request bodies for sign-in, users, groups, roles and quotas."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

from det_contracts.events.gateway import AgentUser, TokenScope
from det_contracts.problems import invalid
from services.rest_requests.body import Body, BoundedList, Flag, Long, documented, requires

_LIFESPAN = re.compile(r"([0-9]{1,6})([hd])")


class Login(Body):
    """POST /auth/login"""

    username: str
    password: str = ""
    is_hashed: Flag = False


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
    lifespan: Annotated[str, documented(pattern="^([0-9]{1,6}[hd])?$")] = ""
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

    username: Annotated[str, documented(minLength=1)] | None = None
    admin: Flag | None = None
    active: Flag | None = None
    remote: Flag | None = None
    display_name: str | None = None
    agent_user_group: AgentUserBody | None = None
    password: str | None = None
    is_hashed: Flag = False


class NewUser(UserBody):
    """A user to be created."""

    model_config = requires("username")


class UserCreation(Body):
    """POST /users"""

    user: NewUser
    password: str = ""
    is_hashed: Flag = False


class SettingBody(Body):
    """One setting that a page stores for a user."""

    storage_path: str = ""
    key: Annotated[str, documented(minLength=1)]
    value: str = ""


class SettingsBody(Body):
    """POST /users/setting: a list of settings, or a single one as sent by older pages."""

    settings: list[SettingBody] = []
    setting: SettingBody | None = None


class GroupBody(Body):
    """PUT /groups/{group_id}"""

    name: Annotated[str, documented(minLength=1)] | None = None
    add_users: BoundedList[Long] = []
    remove_users: BoundedList[Long] = []


class NewGroup(GroupBody):
    """POST /groups"""

    model_config = requires("name")


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
    scope_cluster: Flag = False


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
