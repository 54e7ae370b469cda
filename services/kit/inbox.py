"""How far the inbox of scripts and workers has come into the log, as one reader of the log knows.

Whoever judges that something is late, or that somebody is silent, has to have heard everybody first: after an
outage the facts that speak against it lie in WITNESS, acknowledged, and are not in the log yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from det_contracts import subjects
from det_contracts.envelope import Recorded
from det_contracts.events import Decision
from services.kit.log import Log, OutcomeUnknown
from services.kit.position_waiters import Reached
from services.kit.records import read_event

AGAIN_S = 0.5
"""How long after the inbox was found not to be read it is looked at again."""
AWAY = (OutcomeUnknown, TimeoutError, OSError)


class Inbox:
    """Position in WITNESS up to which everything is admitted and folded, or refused."""

    def __init__(self, journal: Log, clock: Callable[[], float]) -> None:
        self._journal = journal
        self._clock = clock
        self.admitted = Reached()
        self._again_at = 0.0

    async def look_back(self, position: int) -> None:
        """Take up what the intake had decided by a position of CONTROL that a snapshot was made at."""
        last = await self._journal.last(subjects.decision(subjects.INTAKE))
        if last is not None and last.position <= position:
            self.folded([read_event(last)])

    def folded(self, events: Sequence[Recorded]) -> None:
        """Take note of folded events."""
        most = max(map(_position, events), default=0)
        if most > self.admitted.position:
            self._again_at = 0.0
            self.admitted.move(most)

    def wait(self, due: float) -> float:
        """Seconds until a due time is to be looked at."""
        return max(due - self._clock(), self._again_at - self._clock(), 0.0)

    async def is_read(self) -> bool:
        """Whether all that lies in WITNESS just now is folded; asked before anything is called late."""
        try:
            _, end = await self._journal.bounds(subjects.WITNESS)
        except AWAY:
            end = self.admitted.position + 1
        read = self.admitted.position >= end
        self._again_at = 0.0 if read else self._clock() + AGAIN_S
        return read


def _position(recorded: Recorded) -> int:
    event = recorded.event
    if type(event) is Decision:
        return event.to if event.owner == subjects.INTAKE else 0
    return recorded.witness
