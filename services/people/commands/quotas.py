"""Commands about quotas of users, groups and workspaces."""

from __future__ import annotations

from det_contracts.commands import SetQuota
from det_contracts.events.gateway import QuotaSet
from det_contracts.problems import invalid
from services.kit.quotas.records import Quota
from services.kit.rules import Call, Result
from services.people import quotas
from services.people.domain import People

MAX_LIMIT = 2**53
"""Maximum limit. Browsers cannot represent larger integers exactly."""


def set_quota(state: People, command: SetQuota, call: Call) -> Result:
    """Set or remove the quota of a holder. Has no effect if nothing changes."""
    quotas.check(state, command.holder)
    for name in Quota.__struct_fields__:
        limit = getattr(command, name)
        if limit is not None and not 0 <= limit <= MAX_LIMIT:
            raise invalid(f"{name} is {limit}: it must be 0 to {MAX_LIMIT}, or null for no limit")
    wanted = Quota(slots=command.slots, jobs=command.jobs, storage_bytes=command.storage_bytes)
    if state.quotas.get(command.holder, Quota()) == wanted:
        return Result()
    limits = {name: getattr(wanted, name) for name in Quota.__struct_fields__}
    done = "removed" if wanted == Quota() else "set"
    return Result([QuotaSet(holder=command.holder, **limits, reason=f"{done} by {command.user}")])


def remove_quota(state: People, holder: str, reason: str) -> list[QuotaSet]:
    """The events that remove the quota of a holder that is being removed."""
    return [QuotaSet(holder=holder, reason=reason)] if holder in state.quotas else []
