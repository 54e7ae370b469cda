"""Who may have a quota, and whom it limits."""

from __future__ import annotations

from det_contracts.problems import invalid
from services.kit.authz.roles import groups_of
from services.people import groups, places, users
from services.people.domain import People

KINDS = ("user", "group", "workspace")


def split(holder: str) -> tuple[str, int]:
    """`("user", 3)` of `user-3`; raises `Refused` (400)."""
    kind, _, id = holder.partition("-")
    if kind not in KINDS or not id.isascii() or not id.isdecimal() or len(id) > 18 or str(int(id)) != id:
        raise invalid(f"'{holder}' has no quota: those of user-<id>, group-<id> and workspace-<id> are known")
    return kind, int(id)


def name_of(state: People, holder: str) -> str:
    """What people call it; raises `Refused` (400, or 404 where there is none)."""
    kind, id = split(holder)
    if kind == "user":
        return users.by_id(state, id).username
    return groups.by_id(state, id).name if kind == "group" else places.workspace(state, id).name


def check(state: People, holder: str) -> None:
    """Raises `Refused` unless there is such a user, group or workspace."""
    name_of(state, holder)


def concerns(state: People, holder: str, user_id: int, workspaces: set[int]) -> bool:
    """Whether a quota limits what a user does who sees these workspaces."""
    kind, id = split(holder)
    if kind == "user":
        return id == user_id
    return id in (groups_of(state, user_id) if kind == "group" else workspaces)
