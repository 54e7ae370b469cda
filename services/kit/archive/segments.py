"""The archive of CONTROL as readers see it: the chain of segments, their blocks, and the index by root.

Everything in it is immutable and stored under its digest, so it can be cached forever. Only the log says
which segment is the newest (`archive.segment_sealed`, whose newest message is never removed from the stream).
"""

from __future__ import annotations

import asyncio
import io
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence

import zstandard

from det_contracts import subjects
from services.kit.archive.segment import (
    RESTORE,
    Header,
    Index,
    MessageDigest,
    block_numbers,
    digest_of,
    read_header,
    unpack_block,
    write_header,
)
from services.kit.blobs import BlobMissing, BlobStore
from services.kit.bounded_dict import BoundedDict
from services.kit.log import BadSegment, Stored
from services.kit.log_memory import matches

INDEX_BYTES = 32 << 20
"""Maximum total size of the indexes kept in memory."""
MAX_CACHED_SUBJECTS = 10_000
"""Number of subjects for which the place of the newest message is cached."""

_Location = tuple[Header, int]


class Segments:
    """Reads and writes segments. Raises `BadSegment` for damaged data, and OSError if the storage fails."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._headers: dict[str, Header] = {}
        self._indexes: OrderedDict[str, Index] = OrderedDict()
        self._newest: BoundedDict[str, tuple[int, _Location | None]] = BoundedDict(MAX_CACHED_SUBJECTS)
        """Per subject, the position up to which it was searched, and the block with its newest message."""

    def __repr__(self) -> str:
        return repr(self._blobs)

    async def chain(self, head: str, after: int = 0) -> list[Header]:
        """Return the segments with positions above `after`, in order.

        `head` is the digest of the newest header.
        """
        headers: list[Header] = []
        while head:
            header = await self._header(head)
            if headers and header.last != headers[-1].first - 1:
                raise BadSegment(f"{header.name} is not the one before {headers[-1].name}. {RESTORE}")
            if header.last <= after:
                break
            headers.append(header)
            head = header.before
        return headers[::-1]

    async def messages(
        self, header: Header, after: int, filters: Sequence[str] = ()
    ) -> AsyncGenerator[list[Stored], None]:
        """Yield the messages above a position, block by block, reading the next block ahead."""
        numbers = list(block_numbers(header, after))
        if roots := [subjects.root_of(pattern) for pattern in filters]:
            wanted = set(numbers) if not all(roots) else await self._blocks_of(header, roots)
            numbers = [number for number in numbers if number in wanted]
        upcoming = asyncio.ensure_future(self._block(header, numbers[0])) if numbers else None
        try:
            for place, _ in enumerate(numbers):
                assert upcoming is not None  # noqa: S101 - for the type checker
                block = await upcoming
                more = place + 1 < len(numbers)
                upcoming = asyncio.ensure_future(self._block(header, numbers[place + 1])) if more else None
                yield _filter_messages(block, after, filters)
        finally:
            if upcoming is not None:
                upcoming.cancel()

    async def last(self, headers: Sequence[Header], subject: str) -> Stored | None:
        """Return the newest message on a subject in these segments, which must start with the first one."""
        end = headers[-1].last if headers else 0
        through, location = self._newest.pop(subject, (0, None))
        # From the newest, and only as far back as this subject was searched before: what is older cannot
        # have changed.
        for header in reversed(headers):
            if header.last <= through:
                break
            if (number := await self._last_in(header, subject)) is not None:
                location = header, number
                break
        self._newest[subject] = end, location
        return None if location is None else _newest_in(await self._block(*location), subject)

    async def store(self, header: Header, index: bytes, content: io.BufferedIOBase) -> str:
        """Store a segment in the archive and return the digest of its header. Idempotent."""
        key = digest_of(written := write_header(header))
        await asyncio.to_thread(self._store, header, index, content, key, written)
        return key

    def _store(
        self, header: Header, index: bytes, content: io.BufferedIOBase, key: str, written: bytes
    ) -> None:
        # The header goes last: if it exists, everything it names exists.
        self._blobs.put(header.content, content)  # type: ignore[arg-type]
        self._blobs.put(header.index, io.BytesIO(index))
        self._blobs.put(key, io.BytesIO(written))

    async def verify(self, key: str, message_digest: str = "") -> Header:
        """Read a whole segment back. With `message_digest`, check that it holds the messages with that
        digest."""
        # To verify means to read what is stored, and not what is remembered.
        self._headers.pop(key, None)
        header = await self._header(key)
        self._indexes.pop(header.index, None)
        await self._index(header)
        digest = await asyncio.to_thread(self._read_whole, header)
        if message_digest and digest != message_digest:
            raise BadSegment(f"{header.name} holds other messages than the stream. {RESTORE}")
        return header

    def _read_whole(self, header: Header) -> str:
        content, message_digest = self._read(header.content, header), MessageDigest()
        if digest_of(content) != header.content or len(content) != header.size:
            raise BadSegment(f"{header.name} is damaged in the archive (blob {header.content}). {RESTORE}")
        for number, block in enumerate(header.blocks):
            for message in unpack_block(header, number, content[block.offset : block.offset + block.size]):
                message_digest.add(message)
        return message_digest.digest

    async def _header(self, key: str) -> Header:
        if key not in self._headers:
            self._headers[key] = read_header(key, await asyncio.to_thread(self._read, key))
        return self._headers[key]

    async def _index(self, header: Header) -> Index:
        if header.index in self._indexes:
            self._indexes.move_to_end(header.index)
            return self._indexes[header.index]
        content = await asyncio.to_thread(self._read, header.index, header)
        try:
            if digest_of(content) != header.index:
                raise BadSegment(f"the index of {header.name} (blob {header.index}) is damaged. {RESTORE}")
            index = Index(content)
        except zstandard.ZstdError as error:
            raise BadSegment(f"the index of {header.name} cannot be read: {error}") from error
        self._indexes[header.index] = index
        while sum(cached.size for cached in self._indexes.values()) > INDEX_BYTES and len(self._indexes) > 1:
            self._indexes.popitem(last=False)
        return index

    async def _blocks_of(self, header: Header, roots: Sequence[str]) -> set[int]:
        index = await self._index(header)
        return {number for root in roots for number in index.blocks(root)}

    async def _last_in(self, header: Header, subject: str) -> int | None:
        """Return the block of a segment that has the newest message on a subject."""
        for number in reversed((await self._index(header)).blocks(subjects.root_of(subject))):
            if _newest_in(await self._block(header, number), subject) is not None:
                return number
        return None

    async def _block(self, header: Header, number: int) -> list[Stored]:
        return await asyncio.to_thread(self._read_block, header, number)

    def _read_block(self, header: Header, number: int) -> list[Stored]:
        block = header.blocks[number]
        return unpack_block(header, number, self._read(header.content, header, block.offset, block.size))

    def _read(self, key: str, header: Header | None = None, offset: int = 0, size: int = -1) -> bytes:
        name = header.name if header is not None else f"the header {key}"
        try:
            with self._blobs.open(key, offset) as file:
                return file.read() if size < 0 else file.read(size)
        except BlobMissing as error:
            raise BadSegment(f"{name} is missing in the archive: {error}. {RESTORE}") from error


def _newest_in(block: list[Stored], subject: str) -> Stored | None:
    return next((message for message in reversed(block) if message.subject == subject), None)


def _filter_messages(block: list[Stored], after: int, filters: Sequence[str]) -> list[Stored]:
    if block[0].position <= after:
        block = [message for message in block if message.position > after]
    if not filters:
        return block
    return [message for message in block if any(matches(pattern, message.subject) for pattern in filters)]
