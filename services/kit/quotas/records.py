"""Quotas, as each owner that enforces them folds them from the log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from det_contracts.events import gateway
from services.kit.rules import Key


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a holder; None means no limit."""

    slots: int | None = None
    jobs: int | None = None
    storage_bytes: int | None = None


@dataclass
class Quotas:
    """Base of the states of all owners that enforce quotas."""

    quotas: dict[str, Quota] = field(default_factory=dict)
    """By holder: `user-<id>`, `group-<id>`, `workspace-<id>`."""


def quota_set(state: Quotas, event: gateway.QuotaSet) -> Iterable[Key]:
    """Fold a holder's new limits; without any, the quota is removed."""
    quota = Quota(slots=event.slots, jobs=event.jobs, storage_bytes=event.storage_bytes)
    if quota == Quota():
        state.quotas.pop(event.holder, None)
    else:
        state.quotas[event.holder] = quota
    yield "quotas", event.holder
