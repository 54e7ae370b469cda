"""Quotas as each owner that goes by them folds them from the log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from det_contracts.events import gateway
from services.kit.rules import Key


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """What a holder may have; None is no limit."""

    slots: int | None = None
    jobs: int | None = None
    storage_bytes: int | None = None


@dataclass
class Quotas:
    """Part of the state of everybody who goes by quotas."""

    quotas: dict[str, Quota] = field(default_factory=dict)
    """By holder: `user-<id>`, `group-<id>`, `workspace-<id>`."""


def quota_set(state: Quotas, event: gateway.QuotaSet) -> Iterable[Key]:
    """Somebody may have more or less, or anything."""
    quota = Quota(slots=event.slots, jobs=event.jobs, storage_bytes=event.storage_bytes)
    if quota == Quota():
        state.quotas.pop(event.holder, None)
    else:
        state.quotas[event.holder] = quota
    yield "quotas", event.holder
