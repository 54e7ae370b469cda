"""User groups, and the holders of roles."""

from __future__ import annotations

from collections.abc import Iterable

from det_contracts import ids
from det_contracts.events.gateway import Grant
from det_contracts.problems import invalid, not_found
from services.kit.authz.roles import Group
from services.people.domain.state import People

ADMINISTRATOR = Grant("ClusterAdmin")
"""The grant of administrators. For users it is recorded in `UserSet` instead of `RolesSet`."""


def by_id(state: People, id: int) -> Group:
    """The group with this id. Raises `Refused` (not found)."""
    group = state.groups.get(id)
    if group is None:
        raise not_found("group", id)
    return group


def parse_holder(holder: str) -> tuple[str, int]:
    """Split `user-3` into `("user", 3)`. Raises `Refused` (400)."""
    kind, _, id = holder.partition("-")
    number = ids.parse_number(id)
    if kind not in ("user", "group") or number is None:
        raise invalid(f"'{holder}' is neither a user nor a group")
    return kind, number


def holders_in(state: People, workspace_id: int) -> Iterable[str]:
    """The holders of roles in a workspace, or in the whole cluster for id 0."""
    return (key[-1] for key in state.granted_in.scan(workspace_id))
