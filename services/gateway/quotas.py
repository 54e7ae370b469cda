"""Who may have a quota, and which quotas somebody is told of."""

from __future__ import annotations

import asyncio

import msgspec

from det_contracts import queries
from det_contracts.problems import invalid
from services.gateway import groups, places, users
from services.gateway.domain import State
from services.gateway.peers import Peers, softly
from services.kit.authz.roles import groups_of

KINDS = ("user", "group", "workspace")


class Used(msgspec.Struct, frozen=True):
    """What counts for the holder of a quota; None while whoever knows is away."""

    slots: int | None = None
    jobs: int | None = None
    storage_bytes: int | None = None


def split(holder: str) -> tuple[str, int]:
    """`("user", 3)` of `user-3`; raises `Refused` (400)."""
    kind, _, id = holder.partition("-")
    if kind not in KINDS or not id.isascii() or not id.isdecimal() or len(id) > 18 or str(int(id)) != id:
        raise invalid(f"'{holder}' has no quota: those of user-<id>, group-<id> and workspace-<id> are known")
    return kind, int(id)


def name_of(state: State, holder: str) -> str:
    """What people call it; raises `Refused` (400, or 404 where there is none)."""
    kind, id = split(holder)
    if kind == "user":
        return users.by_id(state, id).username
    return groups.by_id(state, id).name if kind == "group" else places.workspace(state, id).name


def check(state: State, holder: str) -> None:
    """Raises `Refused` unless there is such a user, group or workspace."""
    name_of(state, holder)


def concerns(state: State, holder: str, user_id: int, workspaces: set[int]) -> bool:
    """Whether a quota limits what a user does who sees these workspaces."""
    kind, id = split(holder)
    if kind == "user":
        return id == user_id
    return id in (groups_of(state, user_id) if kind == "group" else workspaces)


async def used(peers: Peers, position: int) -> dict[str, Used]:
    """What counts for each holder of a quota, with all up to that position of the log."""
    asked = (queries.JobsUsed(), queries.StorageUsed())
    had, stored = await asyncio.gather(*(softly(peers, query, position) for query in asked))
    return {one: Used(**had.get(one, {}), storage_bytes=stored.get(one)) for one in {*had, *stored}}
