"""The command that has an owner's database rebuilt from the log."""

from __future__ import annotations

from det_contracts.administration import RebuildDatabase
from det_contracts.commands import OWNER_OF
from det_contracts.events.gateway import RebuildAsked, RebuildFromCopyAsked
from det_contracts.metrics_shards import FURTHER_SHARDS, OWNER
from det_contracts.problems import invalid
from services.kit.rules import Call, Result
from services.people.domain.state import People

METRICS = (OWNER, *FURTHER_SHARDS)
REBUILT = tuple(sorted(set(OWNER_OF.values()) - set(METRICS)))
"""Services whose databases follow from CONTROL alone."""


def rebuild_database(state: People, command: RebuildDatabase, call: Call) -> Result:
    """Record that an owner's database is to be rebuilt. Raises `Refused` if there is no such database."""
    reason = f"asked for by {command.user}"
    # Metrics knows where its copies lie, and refuses by itself what would lose something (decision 100).
    if command.owner in METRICS:
        return Result([RebuildFromCopyAsked(owner=command.owner, reason=reason)])
    if command.owner not in REBUILT:
        raise invalid(f"program: '{command.owner[:80]}' has no database; give one of {', '.join(REBUILT)}")
    return Result([RebuildAsked(owner=command.owner, reason=reason)])
