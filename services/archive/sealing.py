"""Seals closed ranges of CONTROL, one segment after the other.

Only the log says what was done: the newest `archive.segment_sealed`, on which the next one is fenced. If a
step is interrupted, it is repeated and produces the same bytes under the same names.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence

import msgspec
import structlog

from det_contracts import codec, subjects
from det_contracts.events.archive import SegmentSealed
from services.kit.archive.log import SEALED, decode_sealed
from services.kit.archive.segment import Header, Writer
from services.kit.archive.segments import Segments
from services.kit.log import Draft, Fence, Log, LogTruncated, Stored

MAX_BYTES = 256 << 20
"""Maximum uncompressed size of a segment's messages, which a reader may have to hold in memory at once."""

log = structlog.get_logger()


class Head(msgspec.Struct, frozen=True):
    """The newest segment according to the log."""

    position: int = 0
    """Position of the event that announced it, on which the next one is fenced; 0 if there is none."""
    fact: SegmentSealed | None = None

    @property
    def last(self) -> int:
        """Position up to which everything is archived."""
        return self.fact.last if self.fact is not None else 0


class Sealer:
    """Copies the next range into the archive whenever there is enough for a segment."""

    def __init__(
        self,
        stream: Log,
        segments: Segments,
        *,
        count: int,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        """`stream` must be the broker's stream alone. `count` is the number of events per segment."""
        self._stream = stream
        self._segments = segments
        self._events_per_segment = count
        self._clock = clock
        self._new_id = new_id

    async def head(self) -> Head:
        """Return the newest segment. Raises `BadSegment` if the log announces it in an unknown format."""
        message = await self._stream.last(SEALED)
        return Head(message.position, decode_sealed(message)) if message is not None else Head()

    async def seal(self) -> Header | None:
        """Seal the next segment. Returns None if there are not enough events for one.

        Raises `BadSegment` if it is not read back as written, `LogTruncated` if messages are missing,
        `FenceLost` if another replica has sealed meanwhile, OSError if the archive does not accept it, and
        otherwise `LogError`.
        """
        head = await self.head()
        first, last = await self._stream.bounds(subjects.CONTROL)
        if last - head.last < self._events_per_segment:
            return None
        # Nothing but the archive removes messages of CONTROL, so these are lost.
        if first > head.last + 1:
            raise LogTruncated(
                f"CONTROL begins at position {first}, the archive {self._segments!r} ends at {head.last}: "
                "the events in between are lost. Restore the broker's data"
            )
        # Without a name, so a process that is killed leaves nothing behind.
        with tempfile.TemporaryFile() as file:
            writer = Writer(subjects.CONTROL, file, head.fact.header if head.fact else "")
            await self._copy(writer, head.last)
            header, index, digest = await asyncio.to_thread(writer.finish)
            file.seek(0)
            key = await self._segments.store(header, index, file)
        # Before it is announced: from then on, readers rely on it, and the broker's copy may be removed.
        await self._segments.verify(key, digest)
        await self._announce(head, header, key)
        return header

    async def _copy(self, writer: Writer, after: int) -> None:
        async with self._stream.read(subjects.CONTROL, after=after) as feed:
            while writer.count < self._events_per_segment and writer.bytes < MAX_BYTES:
                batch = await feed.batch()
                # Compressing a block takes tens of milliseconds, in which the lease could not be renewed.
                await asyncio.to_thread(writer.add, self._messages_that_fit(writer, batch.messages))

    def _messages_that_fit(self, writer: Writer, messages: Sequence[Stored]) -> Iterator[Stored]:
        for message in messages:
            if writer.count == self._events_per_segment or writer.bytes >= MAX_BYTES:
                return
            yield message

    async def _announce(self, head: Head, header: Header, key: str) -> None:
        """Append the announcement, unless another segment was sealed meanwhile."""
        fact = SegmentSealed(
            stream=header.stream,
            first=header.first,
            last=header.last,
            header=key,
            size=header.size,
            reason=f"{header.last - header.first + 1} events were copied, and read back",
        )
        id = self._new_id()
        body = codec.encode(fact, id=id, actor=subjects.ARCHIVE, at=self._clock())
        await self._stream.append_batch([Draft(SEALED, body, id)], fence=Fence(SEALED, head.position))
        log.info("segment.sealed", first=header.first, last=header.last, bytes=header.size, header=key)
