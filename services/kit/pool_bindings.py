"""Which workspaces may use which resource pools, as each owner that goes by it folds it (decision 64).

A pool that is bound to no workspace is open to all. What was submitted before a binding stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from det_contracts.events import gateway
from det_contracts.problems import Refused, invalid
from services.kit.rules import Key


class Bound(msgspec.Struct, frozen=True):
    """The workspaces of a pool that not all may use."""

    workspaces: tuple[int, ...]
    """Ascending."""


@dataclass
class Bindings:
    """Part of the state of everybody who goes by bindings."""

    bindings: dict[str, Bound] = field(default_factory=dict)
    """By pool; one that is not here is open to all."""


def pool_bound(state: Bindings, event: gateway.PoolBound) -> Iterable[Key]:
    """Others may use a pool from now on."""
    if event.workspaces:
        state.bindings[event.pool] = Bound(event.workspaces)
    else:
        state.bindings.pop(event.pool, None)
    yield "bindings", event.pool


def may_use(state: Bindings, pool: str, workspace_id: int) -> bool:
    """Whether a workspace may submit to a pool."""
    bound = state.bindings.get(pool)
    return bound is None or workspace_id in bound.workspaces


def check_pool(state: Bindings, pool: str, workspace_id: int, name: str) -> None:
    """Raises `Refused` (400) where the workspace of that id and name may not use the pool."""
    if not may_use(state, pool, workspace_id):
        raise not_available(pool, workspace_id, name)


def not_available(pool: str, workspace_id: int, name: str) -> Refused:
    """The refusal; which workspaces may use the pool is not everybody's to know."""
    return invalid(
        f"resource pool {pool} does not exist or is not available to workspace id {workspace_id}: it is "
        f"bound to others than '{name}'. 'det workspace list-pools {name}' shows what to choose from; an "
        f"administrator binds one with 'det resource-pool bindings add {pool} {name}'"
    )
