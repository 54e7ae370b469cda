"""Holders of quotas, and whom a quota limits."""

from __future__ import annotations

from det_contracts.problems import invalid
from services.kit.authz.roles import groups_of
from services.people import groups, users, workspace_records
from services.people.domain import People

KINDS = ("user", "group", "workspace")


def parse_holder(holder: str) -> tuple[str, int]:
    """Split `user-3` into `("user", 3)`. Raises `Refused` (400)."""
    kind, _, id = holder.partition("-")
    # In one spelling only: `user-03` and digits of other scripts would be a second holder for the same user.
    if kind not in KINDS or not id.isascii() or not id.isdecimal() or len(id) > 18 or str(int(id)) != id:
        raise invalid(f"'{holder}' cannot have a quota: give user-<id>, group-<id> or workspace-<id>")
    return kind, int(id)


def name_of(state: People, holder: str) -> str:
    """The holder's name. Raises `Refused` (400, or 404 if the holder does not exist)."""
    kind, id = parse_holder(holder)
    if kind == "user":
        return users.by_id(state, id).username
    return groups.by_id(state, id).name if kind == "group" else workspace_records.workspace(state, id).name


def check(state: People, holder: str) -> None:
    """Raise `Refused` unless the user, group or workspace exists."""
    name_of(state, holder)


def applies_to(state: People, holder: str, user_id: int, workspaces: set[int]) -> bool:
    """Whether a quota applies to a user who can see these workspaces."""
    kind, id = parse_holder(holder)
    if kind == "user":
        return id == user_id
    return id in (groups_of(state, user_id) if kind == "group" else workspaces)
