"""Which workspaces may use which resource pools, as each owner that needs it folds it (decision 64).

A pool without bindings is open to all. Jobs submitted before a binding stay.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from det_contracts.events import gateway
from det_contracts.problems import Refused, invalid
from services.kit.rules import Key


class Bound(msgspec.Struct, frozen=True):
    """The workspaces that may use a restricted pool."""

    workspaces: tuple[int, ...]
    """Ascending workspace ids."""


@dataclass
class Bindings:
    """Base of the states of all owners that enforce bindings."""

    bindings: dict[str, Bound] = field(default_factory=dict)
    """By pool name; a pool not listed is open to all."""


def pool_bound(state: Bindings, event: gateway.PoolBound) -> Iterable[Key]:
    """Fold a change of a pool's bindings."""
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
    """Raise `Refused` (400) if the workspace with that id and name may not use the pool."""
    if not may_use(state, pool, workspace_id):
        raise not_available(pool, workspace_id, name)


def not_available(pool: str, workspace_id: int, name: str) -> Refused:
    """Build the refusal. It does not reveal which workspaces may use the pool."""
    return invalid(
        f"resource pool {pool} does not exist or is not available to workspace id {workspace_id}: it is "
        f"bound to others than '{name}'. 'det workspace list-pools {name}' shows what to choose from; an "
        f"administrator binds one with 'det resource-pool bindings add {pool} {name}'"
    )
