"""Groups of users, and who holds which roles."""

from __future__ import annotations

from collections.abc import Iterable

from det_contracts.events.gateway import Grant
from det_contracts.problems import invalid, not_found
from services.kit.authz.roles import Group
from services.people.domain.state import People

ADMINISTRATOR = Grant("ClusterAdmin")
"""What of a user is told by `UserSet`."""


def by_id(state: People, id: int) -> Group:
    """Raises `Refused` (not found)."""
    found = state.groups.get(id)
    if found is None:
        raise not_found("group", id)
    return found


def of_holder(holder: str) -> tuple[str, int]:
    """`("user", 3)` of `user-3`; raises `Refused` (400)."""
    kind, _, id = holder.partition("-")
    if kind not in ("user", "group") or not id.isdecimal():
        raise invalid(f"'{holder}' is neither a user nor a group")
    return kind, int(id)


def holders_in(state: People, workspace_id: int) -> Iterable[str]:
    """Who was given a role in a workspace; of 0, in the whole cluster."""
    return (key[-1] for key in state.granted_in.scan(workspace_id))
