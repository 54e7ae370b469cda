"""Quotas (our addition)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.catalogue.domain import State
from services.people import quotas as holders
from services.rest_routes.people import quota_use as quotas


def quota(state: State, holder: str, used: Mapping[str, quotas.Usage]) -> dict[str, Any]:
    """A holder's limits and usage. Null means no limit, or that the usage is currently unknown."""
    kind, id = holders.parse_holder(holder)
    limit, usage = state.quotas[holder], used.get(holder, quotas.Usage())
    return {
        "holder": holder,
        "kind": kind,
        "id": id,
        "name": holders.name_of(state, holder),
        "slots": limit.slots,
        "jobs": limit.jobs,
        "storageBytes": limit.storage_bytes,
        "used": {"slots": usage.slots, "jobs": usage.jobs, "storageBytes": usage.storage_bytes},
    }
