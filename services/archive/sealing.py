"""Seals closed ranges of CONTROL, one segment behind the other.

What was done is told by the log alone: the newest `archive.segment_sealed`, on which the next one is fenced.
Whoever is interrupted at any step begins it again, and makes the same bytes under the same names.
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
from services.kit.archive.log import SEALED, sealed
from services.kit.archive.segment import Header, Writer
from services.kit.archive.segments import Segments
from services.kit.log import Draft, Fence, Log, LogTruncated, Stored

MOST_BYTES = 256 << 20
"""Of the messages of one segment, before they are compressed: what a reader of all of it may need at once."""

log = structlog.get_logger()


class Head(msgspec.Struct, frozen=True):
    """The newest segment, as the log tells."""

    position: int = 0
    """Of the fact that it is sealed, on which the next one is fenced; 0 for none."""
    fact: SegmentSealed | None = None

    @property
    def last(self) -> int:
        """Up to where everything is archived."""
        return self.fact.last if self.fact is not None else 0


class Sealer:
    """Copies what is next into the archive, as long as there is enough for a segment."""

    def __init__(
        self,
        stream: Log,
        segments: Segments,
        *,
        count: int,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        """`stream` is the broker's alone; `count` events make a segment."""
        self._stream = stream
        self._segments = segments
        self._count = count
        self._clock = clock
        self._new_id = new_id

    async def head(self) -> Head:
        """The newest segment; raises `BadSegment` where the log tells of it in an unknown way."""
        found = await self._stream.last(SEALED)
        return Head(found.position, sealed(found)) if found is not None else Head()

    async def seal(self) -> Header | None:
        """Seal the next segment; None where there is not enough for one.

        Raises `BadSegment` where it is not read back as it was written, `LogTruncated` where messages are
        missing, `FenceLost` where somebody else has sealed meanwhile, OSError where the archive does not
        take it, and else `LogError`.
        """
        head = await self.head()
        first, last = await self._stream.bounds(subjects.CONTROL)
        if last - head.last < self._count:
            return None
        if first > head.last + 1:
            raise LogTruncated(
                f"CONTROL begins at position {first}, the archive {self._segments!r} ends at {head.last}: "
                "what lies between is nowhere. Restore the broker's data"
            )
        with tempfile.TemporaryFile() as file:
            writer = Writer(subjects.CONTROL, file, head.fact.header if head.fact else "")
            await self._copy(writer, head.last)
            header, index, told = await asyncio.to_thread(writer.finish)
            file.seek(0)
            key = await self._segments.store(header, index, file)
        await self._segments.verify(key, told)
        await self._state(head, header, key)
        return header

    async def _copy(self, writer: Writer, after: int) -> None:
        async with self._stream.read(subjects.CONTROL, after=after) as feed:
            while writer.count < self._count and writer.bytes < MOST_BYTES:
                batch = await feed.batch()
                await asyncio.to_thread(writer.add, self._fitting(writer, batch.messages))

    def _fitting(self, writer: Writer, messages: Sequence[Stored]) -> Iterator[Stored]:
        for message in messages:
            if writer.count == self._count or writer.bytes >= MOST_BYTES:
                return
            yield message

    async def _state(self, head: Head, header: Header, key: str) -> None:
        """Append the fact, unless another one was sealed meanwhile."""
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
