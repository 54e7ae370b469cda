"""How much of the inbox of scripts and workers has reached the log, as seen by one reader of the log.

A service must read the whole inbox before it decides that something is late or silent: after an outage, the
facts that show otherwise may lie in WITNESS, acknowledged but not yet in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from det_contracts import subjects
from det_contracts.envelope import Recorded
from det_contracts.events import Decision
from services.kit.awaitable_position import AwaitablePosition
from services.kit.log import Log, OutcomeUnknown
from services.kit.records import read_event

RETRY_S = 0.5
"""Seconds until the inbox is checked again after it was found unread."""
UNREACHABLE_ERRORS = (OutcomeUnknown, TimeoutError, OSError)


class Inbox:
    """The position in WITNESS up to which everything is either refused, or admitted and folded."""

    def __init__(self, journal: Log, clock: Callable[[], float]) -> None:
        self._journal = journal
        self._clock = clock
        self.admitted = AwaitablePosition()
        self._retry_at = 0.0

    async def restore_position(self, position: int) -> None:
        """Restore the inbox position as of a snapshot's position in CONTROL."""
        last = await self._journal.last(subjects.decision(subjects.INTAKE))
        # A later decision is not part of the snapshot's state, and is folded when it is read.
        if last is not None and last.position <= position:
            self.on_folded([read_event(last)])

    def on_folded(self, events: Sequence[Recorded], passed_over: int = 0) -> None:
        """Update the position from folded events, and from the newest fact that was passed over."""
        most = max(map(_position, events), default=0)
        most = max(most, passed_over)
        if most > self.admitted.position:
            self._retry_at = 0.0
            self.admitted.advance(most)

    def seconds_until(self, due: float) -> float:
        """Return the seconds until a due time should be looked at."""
        return max(due - self._clock(), self._retry_at - self._clock(), 0.0)

    async def is_fully_folded(self) -> bool:
        """Whether everything now in WITNESS is folded. Check this before treating anything as late."""
        try:
            _, end = await self._journal.bounds(subjects.WITNESS)
        except UNREACHABLE_ERRORS:
            # While the broker is away, something may be waiting there. Nothing counts as late then.
            end = self.admitted.position + 1
        read = self.admitted.position >= end
        # The due time has passed and would otherwise be looked at again and again without a pause.
        self._retry_at = 0.0 if read else self._clock() + RETRY_S
        return read


def _position(recorded: Recorded) -> int:
    event = recorded.event
    if type(event) is Decision:
        # What was refused or was no fact has no event of its own; only the intake's decisions say that it
        # was read.
        return event.to if event.owner == subjects.INTAKE else 0
    return recorded.witness
