"""Records that an owner parked: it is asked to look at them once more."""

from __future__ import annotations

from det_contracts.administering import RetryDecisions
from det_contracts.commands.owners import OWNER_OF
from det_contracts.events.gateway import DecisionsRetried
from det_contracts.problems import invalid
from services.kit.rules import Call, Ruling
from services.people.domain.state import People

DECIDERS = tuple(sorted(set(OWNER_OF.values()) | {"metrics"}))
"""Who decides about records of its own; metrics does without having been asked."""


def retry_decisions(state: People, command: RetryDecisions, call: Call) -> Ruling:
    """State that an owner is to try again; raises `Refused` for what is none."""
    if command.owner not in DECIDERS:
        raise invalid(f"program: '{command.owner[:80]}' decides nothing; give one of {', '.join(DECIDERS)}")
    return Ruling([DecisionsRetried(owner=command.owner, reason=f"asked for by {command.user}")])
