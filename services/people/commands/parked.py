"""The commands about what an owner cannot decide about, or cannot fold."""

from __future__ import annotations

from det_contracts import subjects
from det_contracts.administration import RetryDecisions, SkipEvent
from det_contracts.commands import OWNER_OF
from det_contracts.events.gateway import DecisionsRetried, EventSkipped, SkippedEvent
from det_contracts.metrics_shards import FURTHER_SHARDS, OWNER
from det_contracts.problems import invalid
from services.kit.rules import Call, Result
from services.kit.standstill import with_skipped
from services.people.domain.state import People

DECIDERS = tuple(sorted({*OWNER_OF.values(), OWNER, *FURTHER_SHARDS}))
"""Services that decide about records. The metrics service decides without commands."""
FOLDED = (subjects.CONTROL, subjects.REPORTS, subjects.LOGS)
"""Streams of which services fold events."""


def retry_decisions(state: People, command: RetryDecisions, call: Call) -> Result:
    """Record that an owner is to retry. Raises `Refused` if it is not a decider."""
    _check(command.owner)
    return Result([DecisionsRetried(owner=command.owner, reason=f"asked for by {command.user}")])


def skip_event(state: People, command: SkipEvent, call: Call) -> Result:
    """Record that an owner is to skip an event. Raises `Refused` if it cannot, or does so already."""
    _check(command.owner)
    if command.stream not in FOLDED:
        raise invalid(f"stream: '{command.stream[:80]}' is not folded; give one of {', '.join(FOLDED)}")
    if not command.reason.strip():
        raise invalid("reason: say why the event may be skipped; the audit shows it")
    newest_skip = state.skips.get(command.owner)
    before = newest_skip.skipped if newest_skip is not None else ()
    skipped = with_skipped(command.owner, before, SkippedEvent(command.stream, command.position))
    decided = EventSkipped(
        owner=command.owner,
        stream=command.stream,
        position=command.position,
        subject=command.subject,
        error=command.error,
        skipped=skipped,
        reason=f"asked for by {command.user}: {command.reason.strip()}",
    )
    return Result([decided])


def _check(owner: str) -> None:
    if owner not in DECIDERS:
        raise invalid(f"program: '{owner[:80]}' makes no decisions; give one of {', '.join(DECIDERS)}")
