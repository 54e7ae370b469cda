"""The commands about what an owner cannot decide about, or cannot fold."""

from __future__ import annotations

from det_contracts import subjects
from det_contracts.administration import RetryDecisions, SkipEvent
from det_contracts.commands.owners import OWNER_OF
from det_contracts.events.gateway import DecisionsRetried, EventSkipped, SkippedEvent
from det_contracts.problems import failed_precondition, invalid
from services.kit.rules import Call, Ruling
from services.people.domain.state import People

DECIDERS = tuple(sorted(set(OWNER_OF.values()) | {"metrics"}))
"""Services that decide about records. The metrics service decides without commands."""
FOLDED = (subjects.CONTROL, subjects.REPORTS, subjects.LOGS)
"""Streams of which services fold events."""
MAX_SKIPPED = 1000
"""Maximum number of events that one owner skips. Who needs more has another problem."""


def retry_decisions(state: People, command: RetryDecisions, call: Call) -> Ruling:
    """Record that an owner is to retry. Raises `Refused` if it is not a decider."""
    _check(command.owner)
    return Ruling([DecisionsRetried(owner=command.owner, reason=f"asked for by {command.user}")])


def skip_event(state: People, command: SkipEvent, call: Call) -> Ruling:
    """Record that an owner is to skip an event. Raises `Refused` if it cannot, or does so already."""
    _check(command.owner)
    if command.stream not in FOLDED:
        raise invalid(f"stream: '{command.stream[:80]}' is not folded; give one of {', '.join(FOLDED)}")
    if not command.reason.strip():
        raise invalid("reason: say why the event may be skipped; the audit shows it")
    known = state.skips.get(command.owner)
    before = known.skipped if known is not None else ()
    one = SkippedEvent(command.stream, command.position)
    if one in before:
        raise failed_precondition(f"the {command.owner} skips event {one.position} of {one.stream} already")
    if len(before) >= MAX_SKIPPED:
        raise failed_precondition(
            f"the {command.owner} skips {MAX_SKIPPED} events already, which is the limit"
        )
    decided = EventSkipped(
        owner=command.owner,
        stream=command.stream,
        position=command.position,
        subject=command.subject,
        error=command.error,
        skipped=(*before, one),
        reason=f"asked for by {command.user}: {command.reason.strip()}",
    )
    return Ruling([decided])


def _check(owner: str) -> None:
    if owner not in DECIDERS:
        raise invalid(f"program: '{owner[:80]}' makes no decisions; give one of {', '.join(DECIDERS)}")
