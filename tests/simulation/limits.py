"""The broker's size limits: the real ones, and small ones that ordinary messages reach."""

from contextlib import ExitStack
from dataclasses import dataclass
from unittest import mock

from det_contracts import limits
from services.intake import admission, relay
from services.kit import log_memory, rounds
from services.scheduler import orders


@dataclass(frozen=True)
class Limits:
    """Bytes of a message with headers, event, command; events and bytes of a round; bytes of briefings."""

    message: int = limits.MESSAGE_BYTES
    event: int = limits.EVENT_BYTES
    stated: int = limits.STATED_BYTES
    events: int = rounds.MAX_EVENTS
    round: int = rounds.MAX_BYTES
    briefings: int = orders.BRIEFINGS_BYTES


USUAL = Limits()
FEW = Limits(events=3)
"""Nearly everything takes several rounds."""
SMALL = Limits(message=24_000, event=20_000, stated=7_000, events=12, round=9_000, briefings=16_000)
"""The same proportions, much smaller."""
ALL = (USUAL, USUAL, USUAL, FEW, SMALL)


def limits_in_force(chosen):
    """Make the services use these limits."""
    stack = ExitStack()
    for target, name, value in (
        (rounds, "MAX_EVENTS", chosen.events),
        (rounds, "MAX_BYTES", chosen.round),
        (rounds, "EVENT_BYTES", chosen.event),
        (log_memory, "EVENT_BYTES", chosen.event),
        (orders, "EVENT_BYTES", chosen.event),
        (orders, "BRIEFINGS_BYTES", chosen.briefings),
        (admission, "STATED_BYTES", chosen.stated),
        (relay, "MAX_FACTS", chosen.events),
        (relay, "BYTES", chosen.round),
        # So that batches occur although few facts wait at a time.
        (relay, "ONE_BY_ONE", 2),
    ):
        stack.enter_context(mock.patch.object(target, name, value))
    return stack
