"""Quotas: given to users, groups and workspaces, and taken back."""

from __future__ import annotations

from det_contracts.commands import SetQuota
from det_contracts.events.gateway import QuotaSet
from det_contracts.problems import invalid
from services.kit.quotas.records import Quota
from services.kit.rules import Call, Ruling
from services.people import quotas
from services.people.domain import People

MOST = 2**53
"""Of anything: numbers beyond are not told apart by browsers."""


def set_quota(state: People, command: SetQuota, call: Call) -> Ruling:
    """Limit a holder, or no longer; what is so already has no effect."""
    quotas.check(state, command.holder)
    for name in Quota.__struct_fields__:
        limit = getattr(command, name)
        if limit is not None and not 0 <= limit <= MOST:
            raise invalid(f"{name} is {limit}: it must be 0 to {MOST}, or null for no limit")
    wanted = Quota(slots=command.slots, jobs=command.jobs, storage_bytes=command.storage_bytes)
    if state.quotas.get(command.holder, Quota()) == wanted:
        return Ruling()
    limits = {name: getattr(wanted, name) for name in Quota.__struct_fields__}
    done = "removed" if wanted == Quota() else "set"
    return Ruling([QuotaSet(holder=command.holder, **limits, reason=f"{done} by {command.user}")])


def without(state: People, holder: str, reason: str) -> list[QuotaSet]:
    """What follows when a holder is gone: nothing else is given its id, and nobody is limited by it."""
    return [QuotaSet(holder=holder, reason=reason)] if holder in state.quotas else []
