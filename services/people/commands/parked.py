"""The command that makes an owner retry its parked records."""

from __future__ import annotations

from det_contracts.administering import RetryDecisions
from det_contracts.commands.owners import OWNER_OF
from det_contracts.events.gateway import DecisionsRetried
from det_contracts.problems import invalid
from services.kit.rules import Call, Ruling
from services.people.domain.state import People

DECIDERS = tuple(sorted(set(OWNER_OF.values()) | {"metrics"}))
"""Services that decide about records. The metrics service decides without commands."""


def retry_decisions(state: People, command: RetryDecisions, call: Call) -> Ruling:
    """Record that an owner is to retry. Raises `Refused` if it is not a decider."""
    if command.owner not in DECIDERS:
        raise invalid(
            f"program: '{command.owner[:80]}' makes no decisions; give one of {', '.join(DECIDERS)}"
        )
    return Ruling([DecisionsRetried(owner=command.owner, reason=f"asked for by {command.user}")])
