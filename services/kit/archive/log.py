"""The whole log: the archive, followed by what is left in the stream."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec

from det_contracts import subjects as names
from det_contracts.events import archive
from services.kit.archive.segment import Header
from services.kit.archive.segments import Segments
from services.kit.cancellation import cancel_and_wait, finish
from services.kit.lag import Lag
from services.kit.log import BadSegment, Batch, Draft, Feed, Fence, Log, PositionRemoved, Stored
from services.kit.records import read_event

SEALED = names.control("archive.segment_sealed", names.CONTROL)
"""Subject on which segments are announced, and on which sealing is fenced."""


class ArchivedLog:
    """Implements `services.kit.log.Log` over a stream whose beginning may have been moved to the archive."""

    def __init__(self, stream: Log, segments: Segments) -> None:
        self._stream = stream
        self._segments = segments

    async def append(self, draft: Draft) -> int:
        return await self._stream.append(draft)

    async def append_batch(self, drafts: Sequence[Draft], *, fence: Fence) -> int:
        return await self._stream.append_batch(drafts, fence=fence)

    @asynccontextmanager
    async def read(self, stream: str, *, after: int, subjects: Sequence[str] = ()) -> AsyncIterator[Feed]:
        if stream != names.CONTROL:
            async with self._stream.read(stream, after=after, subjects=subjects) as plain:
                yield plain
            return
        feed = _ArchivedFeed(self, self._stream, after, subjects)
        try:
            await feed.open()
            yield feed
        finally:
            await finish(feed.close())

    async def last(self, subject: str) -> Stored | None:
        message = await self._stream.last(subject)
        # The newest announcement never leaves the stream, and `chain` itself begins by looking it up.
        if message is not None or names.stream_of(subject) != names.CONTROL or subject == SEALED:
            return message
        return await self._segments.last(await self.chain(), subject)

    async def end(self, stream: str, *, after: int, subjects: Sequence[str] = ()) -> int:
        end = await self._stream.end(stream, after=after, subjects=subjects)
        # Where the stream has nothing on these subjects, all that there may be is in the archive.
        if end == after and subjects and stream == names.CONTROL and (chain := await self.chain(after)):
            return chain[-1].last
        return end

    async def bounds(self, stream: str) -> tuple[int, int]:
        first, last = await self._stream.bounds(stream)
        if stream == names.CONTROL and first > 1 and (chain := await self.chain()):
            first = min(first, chain[0].first)
        return first, last

    async def forget(self, stream: str, through: int) -> None:
        await self._stream.forget(stream, through)

    async def chain(self, after: int = 0) -> list[Header]:
        """Return the segments with positions above `after`, in order. Raises `BadSegment`."""
        head = decode_sealed(await self._stream.last(SEALED))
        return await self._segments.chain(head.header, after) if head is not None else []

    async def status(self) -> ArchiveStatus:
        """Return the status of the archive."""
        first, last = await self._stream.bounds(names.CONTROL)
        chain = await self.chain()
        return ArchiveStatus(
            place=repr(self._segments),
            segments=len(chain),
            bytes=sum(header.size for header in chain),
            archived=chain[-1].last if chain else 0,
            first=first,
            last=last,
        )

    async def archived_messages(
        self, after: int, filters: Sequence[str]
    ) -> AsyncGenerator[list[Stored], None]:
        """Yield the archived messages above a position, in portions."""
        for header in await self.chain(after):
            async with contextlib.aclosing(self._segments.messages(header, after, filters)) as blocks:
                async for block in blocks:
                    yield block


class ArchiveStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Status of a log's archive, for display."""

    place: str = ""
    """Empty if there is no archive."""
    segments: int = 0
    bytes: int = 0
    archived: int = 0
    """Position up to which everything is archived."""
    first: int
    """Position of the first message in the broker."""
    last: int


async def archive_status(log: Log) -> ArchiveStatus:
    """Return the status of a log's archive. Raises `LogError`, or OSError if its storage does not answer."""
    if not isinstance(log, ArchivedLog):
        first, last = await log.bounds(names.CONTROL)
        return ArchiveStatus(first=first, last=last)
    return await log.status()


def decode_sealed(message: Stored | None) -> archive.SegmentSealed | None:
    """Decode an announcement of the newest segment; None for None.

    Raises `BadSegment` for any other message.
    """
    if message is None:
        return None
    event = read_event(message).event
    if not isinstance(event, archive.SegmentSealed):
        raise BadSegment(
            f"message {message.position} of CONTROL describes the archive in an unknown format: "
            "update Steadfast"
        )
    return event


class _ArchivedFeed:
    """A running read: first from the archive, as far as needed, then from the stream."""

    def __init__(self, log: ArchivedLog, stream: Log, after: int, filters: Sequence[str]) -> None:
        self._log = log
        self._source = stream
        self.position = after
        self._filters = filters
        self._opened = contextlib.AsyncExitStack()
        self._feed: Feed | None = None
        self._archived_blocks: AsyncGenerator[list[Stored], None] | None = None
        self._end = 0
        self._next: asyncio.Future[list[Stored] | None] | None = None
        self._lag = Lag()

    @property
    def lag(self) -> Lag:
        return self._lag if self._feed is None else self._feed.lag

    async def open(self) -> None:
        """Start at the position. Raises `LogTruncated` if neither archive nor stream has what follows it."""
        if self._filters:
            # With filters, the stream cannot tell whether older matching messages are missing from it.
            await self._switch_to_archive()
        if self._archived_blocks is None:
            await self._switch_to_stream()

    async def close(self) -> None:
        """Stop reading."""
        if self._next is not None:
            await cancel_and_wait(self._next)
        if self._archived_blocks is not None:
            await self._archived_blocks.aclose()
        await self._opened.aclose()

    async def batch(self) -> Batch:
        while True:
            if self._archived_blocks is not None:
                messages = await self._next_archived()
                if messages is None:
                    await self._switch_to_stream()
                elif messages:
                    return Batch(messages, False)
                continue
            assert self._feed is not None  # noqa: S101 - for the type checker
            try:
                batch = await self._feed.batch()
            except PositionRemoved as gone:
                await self._leave_stream(gone)
                continue
            if batch.messages:
                self.position = batch.messages[-1].position
            return batch

    async def _next_archived(self) -> list[Stored] | None:
        """Return the next archived messages, or None if there are no more. The caller may be cancelled."""
        if self._next is None:
            # A future of its own: a cancelled `anext` would end the generator, and the next call would find
            # the archive at its end.
            self._next = asyncio.ensure_future(self._next_block())
        messages = await asyncio.shield(self._next)
        self._next = None
        if messages:
            self.position = messages[-1].position
        return messages

    async def _next_block(self) -> list[Stored] | None:
        assert self._archived_blocks is not None  # noqa: S101 - for the type checker
        return await anext(self._archived_blocks, None)

    async def _switch_to_stream(self) -> None:
        self._archived_blocks, self.position = None, max(self.position, self._end)
        try:
            self._feed = await self._opened.enter_async_context(
                self._source.read(names.CONTROL, after=self.position, subjects=self._filters)
            )
        except PositionRemoved as gone:
            await self._leave_stream(gone)

    async def _leave_stream(self, gone: PositionRemoved) -> None:
        """Continue with the archive. Raises `PositionRemoved` if the archive does not have the messages
        either."""
        await self._opened.aclose()
        self._feed = None
        await self._switch_to_archive()
        if self._archived_blocks is None:
            raise gone

    async def _switch_to_archive(self) -> None:
        chain = await self._log.chain(self.position)
        if not chain or chain[0].first > self.position + 1:
            return
        self._end = chain[-1].last
        self._archived_blocks = self._log.archived_messages(self.position, self._filters)
