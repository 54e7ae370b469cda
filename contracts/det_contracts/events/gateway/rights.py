"""Who may do what, and how much: roles, quotas, pools bound to workspaces."""

from __future__ import annotations

from typing import Literal

import msgspec

from det_contracts.codec import event


class Grant(msgspec.Struct, frozen=True, order=True):
    """A role in a workspace or in the whole cluster."""

    role: str
    workspace_id: int = 0
    """0 means the whole cluster."""


@event("gateway.roles.set", key="holder")
class RolesSet(msgspec.Struct, frozen=True):
    """The complete set of a holder's roles. Whether a user is an administrator is in `UserSet`."""

    holder: str
    """`user-<id>` or `group-<id>`."""
    grants: tuple[Grant, ...]
    reason: str


AuthzMode = Literal["basic", "rbac"]
"""Whether rights are decided by ownership and administrators, or by roles."""


@event("gateway.authz.set", key="scope")
class AuthzSet(msgspec.Struct, frozen=True):
    """The way in which rights are decided has changed, for the whole cluster."""

    mode: AuthzMode
    reason: str
    scope: Literal["cluster"] = "cluster"


@event("gateway.quota.set", key="holder")
class QuotaSet(msgspec.Struct, frozen=True, kw_only=True):
    """The complete limits of a user, of a group's members together, or of a workspace.

    Scheduler, searcher and checkpoints listen. None means no limit; without any limit there is no quota.
    """

    holder: str
    """`user-<id>`, `group-<id>` or `workspace-<id>`."""
    slots: int | None = None
    """Slots held at the same time."""
    jobs: int | None = None
    """Experiments and tasks that have not ended."""
    storage_bytes: int | None = None
    """Size of registered checkpoints that are not deleted."""
    reason: str


@event("gateway.pool.bound", key="pool")
class PoolBound(msgspec.Struct, frozen=True, kw_only=True):
    """From now on only these workspaces may submit to a resource pool; if empty, all may.

    Searcher and scheduler listen and refuse other submissions. Earlier submissions are unaffected.
    """

    pool: str
    workspaces: tuple[int, ...]
    """Ascending."""
    reason: str
