"""Resource pools: bound to workspaces, which alone may use them then, and opened to all again."""

from __future__ import annotations

from det_contracts import ids
from det_contracts.administering import BindPool
from det_contracts.events.gateway import PoolBound
from det_contracts.problems import invalid, precondition
from services.kit.rules import Call, Ruling
from services.people import places
from services.people.domain.state import People

DEFAULT_POOL = "default"
"""What names no pool goes there."""
MOST_BOUND = 10_000
"""Workspaces of one pool."""


def bind_pool(state: People, command: BindPool, call: Call) -> Ruling:
    """Let other workspaces use a pool; what is so already has no effect."""
    if command.pool == DEFAULT_POOL:
        raise precondition(
            "the default resource pool cannot be bound: what names no pool goes there, from any workspace"
        )
    if not ids.is_token(command.pool):
        raise invalid(f"'{command.pool[:80]}' is no name of a resource pool")
    for id in command.workspaces:
        places.workspace(state, id)
    known = state.bindings.get(command.pool)
    before, given = set(known.workspaces) if known is not None else set(), set(command.workspaces)
    wanted = {"add": before | given, "remove": before - given, "replace": given}[command.change]
    if command.change == "remove" and not given <= before:
        one = places.workspace(state, min(given - before))
        raise precondition(f"resource pool '{command.pool}' is not bound to workspace '{one.name}'")
    if len(wanted) > MOST_BOUND:
        raise invalid(f"a resource pool may be bound to at most {MOST_BOUND} workspaces, not {len(wanted)}")
    if wanted == before:
        return Ruling()
    done = f"bound by {command.user}" if wanted else f"opened to all workspaces by {command.user}"
    return Ruling([PoolBound(pool=command.pool, workspaces=tuple(sorted(wanted)), reason=done)])


def unbound(state: People, workspace_id: int, reason: str) -> list[PoolBound]:
    """What follows when a workspace goes; raises `Refused` where that would open a pool to everybody."""
    found = []
    for pool, bound in state.bindings.items():
        left = tuple(one for one in bound.workspaces if one != workspace_id)
        if not left:
            raise precondition(
                f"resource pool '{pool}' is bound to workspace {workspace_id} alone: without it all "
                "could use it. Bind it to another workspace first, or unbind it"
            )
        if left != bound.workspaces:
            found.append(PoolBound(pool=pool, workspaces=left, reason=reason))
    return found
