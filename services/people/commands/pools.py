"""Commands that restrict resource pools to workspaces, or open them to all."""

from __future__ import annotations

from det_contracts import ids
from det_contracts.administration import BindPool
from det_contracts.events.gateway import PoolBound
from det_contracts.problems import failed_precondition, invalid
from services.kit.rules import Call, Result
from services.people import workspace_records
from services.people.domain.state import People

DEFAULT_POOL = "default"
"""The pool of tasks that name none."""
MAX_BOUND_WORKSPACES = 10_000
"""Maximum number of workspaces bound to one pool."""


def bind_pool(state: People, command: BindPool, call: Call) -> Result:
    """Change the workspaces that may use a pool. Has no effect if nothing changes."""
    if command.pool == DEFAULT_POOL:
        raise failed_precondition(
            "the default resource pool cannot be bound: tasks of any workspace that name no pool run there"
        )
    if not ids.is_token(command.pool):
        raise invalid(f"'{command.pool[:80]}' is not a valid name of a resource pool")
    for id in command.workspaces:
        workspace_records.workspace(state, id)
    bound = state.bindings.get(command.pool)
    before, named = set(bound.workspaces) if bound is not None else set(), set(command.workspaces)
    wanted = {"add": before | named, "remove": before - named, "replace": named}[command.change]
    if command.change == "remove" and not named <= before:
        workspace = workspace_records.workspace(state, min(named - before))
        raise failed_precondition(
            f"resource pool '{command.pool}' is not bound to workspace '{workspace.name}'"
        )
    if len(wanted) > MAX_BOUND_WORKSPACES:
        raise invalid(
            f"a resource pool may be bound to at most {MAX_BOUND_WORKSPACES} workspaces, not {len(wanted)}"
        )
    if wanted == before:
        return Result()
    done = f"bound by {command.user}" if wanted else f"opened to all workspaces by {command.user}"
    return Result([PoolBound(pool=command.pool, workspaces=tuple(sorted(wanted)), reason=done)])


def unbind_workspace(state: People, workspace_id: int, reason: str) -> list[PoolBound]:
    """The events for a workspace that is removed. Raises `Refused` if a pool would be opened to everyone."""
    events = []
    for pool, bound in state.bindings.items():
        left = tuple(id for id in bound.workspaces if id != workspace_id)
        if not left:
            raise failed_precondition(
                f"resource pool '{pool}' is bound to workspace {workspace_id} alone: without it all "
                "could use it. Bind it to another workspace first, or unbind it"
            )
        if left != bound.workspaces:
            events.append(PoolBound(pool=pool, workspaces=left, reason=reason))
    return events
