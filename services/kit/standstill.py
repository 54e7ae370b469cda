"""The event at which one owner's fold stands still because it cannot process it, and the events it skips.

An event that fails is tried twice, the second time on a freshly loaded state. If it fails again, folding
stops before it: the state stays that of the event before. The process keeps running, so that its health pages
can say what is wrong, and waits until an administrator has the event retried or skipped.

Which events are skipped is read before anything is folded, so a state rebuilt from the log lacks the same
ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
import structlog

from det_contracts import subjects
from det_contracts.envelope import PassedOver, Recorded, Unknown
from det_contracts.events.gateway import DecisionsRetried, EventSkipped, SkippedEvent
from det_contracts.problems import Refused, failed_precondition, unavailable
from services.kit.log import Log, OutcomeUnknown, Stored
from services.kit.portions import Portion
from services.kit.records import Reader, read_event

SKIPPED = "skipped by an administrator"
MAX_SKIPPED = 1000
"""Maximum number of events that one owner skips. Needing more of them is another problem."""
RETRY_S = 0.2
"""Pause in seconds before a request that the log did not answer is repeated."""

log = structlog.get_logger()


class Failed(msgspec.Struct, frozen=True):
    """An event that the fold cannot process."""

    stream: str
    position: int
    subject: str
    error: str

    @property
    def location(self) -> str:
        """Where it is, on one line."""
        return f"{self.stream} {self.position} {self.subject}"

    def refusal(self, owner: str) -> Refused:
        """The answer to whoever needs what comes after it."""
        return unavailable(
            f"the {owner} cannot process event {self.position} of {self.stream}, and stands still until an "
            "administrator has it retried or skipped; see 'det master parked'"
        )


class Poison(Exception):
    """An event that `evolve` cannot process. The text is its history."""

    def __init__(self, failed: Failed, story: str) -> None:
        super().__init__(story)
        self.failed = failed


class Standstill:
    """Decides for one owner which events are folded, which are skipped, and where folding waits."""

    def __init__(self, owner: str, journal: Log) -> None:
        self.stands = asyncio.Event()
        """Set while folding waits for an administrator."""
        self._owner = owner
        self._journal = journal
        self._skipped = frozenset[tuple[str, int]]()
        self._passed = set[tuple[str, int]]()
        """Those of them that were skipped here."""
        self._first_failure: Failed | None = None
        """The last event that failed, which is tried once more."""
        self._poison: Failed | None = None
        """The event before which folding stops."""
        self._read_up_to = 0
        """Position in CONTROL up to which administrators' requests are taken into account."""
        self._filters = [
            subjects.control("gateway.event.skipped", owner),
            subjects.control("gateway.decisions.retried", owner),
        ]

    @property
    def failed(self) -> Failed | None:
        """The event at which folding waits; None if it does not."""
        return self._poison if self.stands.is_set() else None

    async def load_skipped(self) -> None:
        """Read which events are skipped. Call it before anything is folded."""
        stored = await self._journal.last(self._filters[0])
        if stored is not None:
            self._read_request(stored)

    def add_skipped(self, event: EventSkipped, folded: int) -> bool:
        """Add the events that an administrator decided to skip.

        `folded` is the position up to which the event's stream is folded. Returns whether the event was
        folded here before this was decided.
        """
        if event.owner != self._owner:
            return False
        # Added to, never replaced: the events come in log order, but `load_skipped` has read the newest of
        # them before.
        self._skipped |= {(skipped.stream, skipped.position) for skipped in event.skipped}
        return event.position <= folded and (event.stream, event.position) not in self._passed

    def skips(self, stream: str, position: int) -> bool:
        """Whether an event that is to be folded now is to be skipped."""
        is_skipped = (stream, position) in self._skipped
        if is_skipped:
            self._passed.add((stream, position))
        return is_skipped

    def read(self, read: Reader, messages: Sequence[Stored], stream: str) -> Portion:
        """Decode messages that are to be folded now, without those to be skipped. Raises `Poison`."""
        decoded, events, passed_over = list[Stored](), list[Recorded](), 0
        for message in messages:
            try:
                is_skipped = bool(self._skipped) and self.skips(stream, message.position)
                recorded = _placeholder_for(message, stream) if is_skipped else read(message, stream)
            except Exception as error:
                failed = Failed(stream, message.position, message.subject, repr(error))
                raise Poison(failed, f"{self._owner} cannot read message {failed.location}") from error
            if isinstance(recorded, PassedOver):
                passed_over = max(passed_over, recorded.witness)
                continue
            decoded.append(message)
            events.append(recorded)
        return Portion(messages, decoded, events, passed_over)

    def stop_position(self, stream: str) -> int:
        """Return the position before which folding of a stream stops; 0 if there is none."""
        return self._poison.position if self._poison is not None and self._poison.stream == stream else 0

    async def record_failure(self, failed: Failed) -> None:
        """Record an event that failed. If it is the same one again, folding stops before it."""
        # Only the second failure counts: the first one may have had a cause outside of the event, such as a
        # lack of memory.
        if self._first_failure is not None and self._first_failure.location == failed.location:
            self._poison = failed
            return
        self._first_failure, self._poison = failed, None
        # A request from before the failure is not about it.
        self._read_up_to = await end_of(self._journal)

    def stands_before(self, stream: str, messages: Sequence[Stored]) -> bool:
        """Whether these messages begin with the one that cannot be folded."""
        return bool(
            self._poison is not None and messages and messages[0].position == self.stop_position(stream)
        )

    async def wait_for_decision(self, stream: str, messages: Sequence[Stored]) -> None:
        """Wait until an administrator decides about the message that these begin with."""
        assert self._poison is not None  # noqa: S101 - for the type checker
        log.critical(
            "fold.stands",
            owner=self._owner,
            at=self._poison.location,
            error=self._poison.error,
        )
        self.stands.set()
        try:
            await self._wait_until_decided(stream, messages[0].position)
        finally:
            self.stands.clear()
        log.warning("fold.goes_on", owner=self._owner, at=self._poison.location)
        self._poison = None

    async def _wait_until_decided(self, stream: str, position: int) -> None:
        reading = self._journal.read(subjects.CONTROL, after=self._read_up_to, subjects=self._filters)
        async with reading as feed:
            while not self.skips(stream, position):
                for message in (await feed.batch()).messages:
                    self._read_up_to = message.position
                    if self._read_request(message):
                        return

    def _read_request(self, message: Stored) -> bool:
        """Read an administrator's request. Returns whether it is to retry."""
        event = read_event(message).event
        if isinstance(event, EventSkipped):
            # Position 0: nothing behind the event that fails is folded here, so what this returns says
            # nothing.
            self.add_skipped(event, 0)
        return isinstance(event, DecisionsRetried)


def with_skipped(
    owner: str, skipped: tuple[SkippedEvent, ...], event: SkippedEvent
) -> tuple[SkippedEvent, ...]:
    """Return what an owner skips once it skips one more event. Raises `Refused` if it cannot skip it."""
    if event in skipped:
        raise failed_precondition(f"the {owner} skips event {event.position} of {event.stream} already")
    # The event that says what is skipped lists all of it, and must fit into one message.
    if len(skipped) >= MAX_SKIPPED:
        raise failed_precondition(f"the {owner} skips {MAX_SKIPPED} events already, which is the limit")
    return (*skipped, event)


def _placeholder_for(message: Stored, stream: str) -> Recorded:
    """Return what is folded in place of a skipped event."""
    # Its position is folded all the same, so that every replica counts it as read.
    return Recorded(message.position, Unknown(SKIPPED, 0, message.subject), "", "", 0.0, "", stream)


async def end_of(journal: Log) -> int:
    """Return the last position of CONTROL, asking until the log answers."""
    while True:
        try:
            return (await journal.bounds(subjects.CONTROL))[1]
        except (OutcomeUnknown, TimeoutError, OSError):
            await asyncio.sleep(RETRY_S)
