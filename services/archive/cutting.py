"""Removes from CONTROL what is archived and no longer needed in the broker.

It never removes an owner's newest decision or anything after it: the broker fences each decision on the one
before, so an owner without its newest decision would be refused forever. It also keeps what a service has not
saved yet, so that a start needs the archive only if a database is gone, and what the intake still has to look
back at.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping

import msgspec
import structlog

from det_contracts import subjects
from det_contracts.events import Decision
from services.archive.sealing import Sealer
from services.kit.archive.segment import Header, digest_of, write_header
from services.kit.archive.segments import Segments
from services.kit.log import Log
from services.kit.records import read_event

STEP = 10_000
"""Number of messages removed at once; it blocks the broker meanwhile (10,000: 18 ms; 500,000: 160 ms)."""
PAUSE_S = 0.1
"""Pause in seconds between two steps, so that others get served."""

log = structlog.get_logger()


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What stays in the broker in any case."""

    keep_s: float
    """Maximum age in seconds of events that always stay."""
    keep_events: int
    """Number of newest messages that always stay."""


class Bound(msgspec.Struct, frozen=True):
    """The position up to which one condition allows the stream to be cut."""

    through: int
    why: str


class Cutter:
    """Cuts the archived part off the stream."""

    def __init__(
        self,
        stream: Log,
        sealer: Sealer,
        segments: Segments,
        limits: Limits,
        *,
        owners: Collection[str],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`owners` are all services that make decisions."""
        self._stream = stream
        self._sealer = sealer
        self._segments = segments
        self._limits = limits
        self._owners = owners
        self._clock = clock
        self._verified: set[str] = set()
        self.bound = Bound(0, "not looked at yet")
        """The most restrictive bound, as of the last look."""

    async def cut(self, saved: Mapping[str, int]) -> int:
        """Remove what may go. Returns the position up to which it is removed.

        `saved` gives the saved position of each service. Raises `BadSegment` if the archive does not hold
        what would be removed, and `LogError` or OSError.
        """
        first, last = await self._stream.bounds(subjects.CONTROL)
        head = await self._sealer.head()
        chain = await self._segments.chain(head.fact.header, first - 1) if head.fact is not None else []
        bounds = [
            Bound(head.last, "later events are not archived yet"),
            Bound(last - self._limits.keep_events, "the newest events stay"),
            *(Bound(position, f"{who} has saved only up to there") for who, position in saved.items()),
            *[bound for owner in self._owners if (bound := await self._decision_bound(owner)) is not None],
        ]
        self.bound = min(bounds, key=lambda bound: bound.through)
        # After an interruption, a part of a segment may be gone already.
        removed_through = first - 1
        for header in chain:
            through = min(header.last, self.bound.through)
            if through <= removed_through:
                break
            # Segments are in order, so everything after this one is more recent still.
            if header.until > self._clock() - self._limits.keep_s:
                self.bound = Bound(removed_through, "later events are too recent")
                break
            removed_through = await self._remove(header, removed_through, through)
        return removed_through

    async def _decision_bound(self, owner: str) -> Bound | None:
        """Return the bound before the newest decision.

        For the intake, keep also what a successor would read.
        """
        message = await self._stream.last(subjects.decision(owner))
        if message is None:
            return None
        event = read_event(message).event
        through = message.position - 1
        # A new intake reads the facts since `seen` to find its position (`services/intake/relay.py`).
        if owner == subjects.INTAKE and isinstance(event, Decision):
            through = min(through, event.seen)
        return Bound(through, f"the newest decision of the {owner} follows it")

    async def _remove(self, header: Header, removed_through: int, through: int) -> int:
        await self._verify(header)
        while removed_through < through:
            removed_through = min(removed_through + STEP, through)
            await self._stream.forget(subjects.CONTROL, removed_through)
            if removed_through < through:
                await asyncio.sleep(PAUSE_S)
        log.info("stream.cut", through=removed_through)
        return removed_through

    async def _verify(self, header: Header) -> None:
        """Make this process itself read a segment back before the only other copy is removed."""
        key = digest_of(write_header(header))
        if key not in self._verified:
            await self._segments.verify(key)
            self._verified.add(key)
