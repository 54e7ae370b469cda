"""The format of a segment: a closed range of CONTROL as three blobs, each stored under its own SHA-256.

The *content* is a sequence of zstd frames, one per block of messages. The *index* says which blocks hold
messages of a root (`subjects.root_of`). The *header* names both, every block with its digest, and the header
of the previous segment, so that the newest header authenticates the whole chain. The format contains no clock
values and no randomness: sealing the same range again produces the same bytes.
"""

from __future__ import annotations

import hashlib
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

import msgspec
import zstandard

from det_contracts import codec, subjects
from services.kit.log import BadSegment, LogTruncated, Stored

BLOCK_EVENTS = 1_000
BLOCK_BYTES = 4 << 20
"""Maximum size of an uncompressed block, except that a single message may be larger."""
LEVEL = 6
DIGEST_BYTES = 16
"""Length of a block's digest."""
ENTRY_BYTES = 8
"""Length of an index entry: four bytes for the root's checksum, four for the block's number."""
FORM = 1


class Block(msgspec.Struct, frozen=True, array_like=True):
    """Location of a run of messages in the content."""

    first: int
    """Position of the first message."""
    offset: int
    size: int
    digest: bytes


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """Everything known about a segment without reading its content."""

    form: int = FORM
    stream: str
    first: int
    last: int
    until: float
    """Time of its last readable event, in seconds since the epoch; 0 if there is none."""
    content: str
    """SHA-256, like `index` and `before`."""
    size: int
    """Size of the content in bytes."""
    index: str
    before: str
    """The header of the previous segment; empty for the first one."""
    blocks: list[Block]

    @property
    def name(self) -> str:
        """The segment's description for messages."""
        return f"the segment of {self.stream} from {self.first} to {self.last}"


class _Columns(msgspec.Struct, array_like=True, gc=False):
    """Messages of a block. Their positions are consecutive."""

    subjects: list[str]
    bodies: list[bytes]
    traces: list[str]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Columns).decode
_headers = msgspec.json.Decoder(Header)


def digest_of(content: bytes) -> str:
    """Return the key under which a blob is stored."""
    return hashlib.sha256(content).hexdigest()


class Writer:
    """Receives the messages of one segment in order and writes its content to a file."""

    def __init__(self, stream: str, target: BinaryIO, before: str) -> None:
        self._stream = stream
        self._target = target
        self._before = before
        self._compress = zstandard.ZstdCompressor(level=LEVEL).compress
        self._digest = hashlib.sha256()
        self._message_digest = MessageDigest()
        self._size = 0
        self._blocks: list[Block] = []
        self._roots: set[tuple[int, int]] = set()
        self._open: list[Stored] = []
        self._open_bytes = 0
        self._last: Stored | None = None
        self._first = 0
        self.bytes = 0
        """Total size of all bodies so far."""
        self.count = 0

    def add(self, messages: Iterable[Stored]) -> None:
        """Add messages. Raises `LogTruncated` if one is missing between them."""
        for message in messages:
            # The stream is emptied up to the end of a segment, so a hole that is sealed can never be filled.
            if self._last is not None and message.position != self._last.position + 1:
                raise LogTruncated(
                    f"stream {self._stream} has a hole: after position {self._last.position} comes "
                    f"{message.position}; none of it is archived"
                )
            self._first = self._first or message.position
            size = len(message.body)
            if self._open and (len(self._open) >= BLOCK_EVENTS or self._open_bytes + size > BLOCK_BYTES):
                self._close_block()
            self._open.append(message)
            self._open_bytes += size
            self._last = message
            self._message_digest.add(message)
            self.bytes += size
            self.count += 1

    def finish(self) -> tuple[Header, bytes, str]:
        """Return the header, the index, and the digest of the messages themselves."""
        self._close_block()
        if self._last is None:
            raise ValueError("a segment holds at least one message")
        index = _pack_index(self._roots)
        header = Header(
            stream=self._stream,
            first=self._first,
            last=self._last.position,
            until=_event_time(self._last),
            content=self._digest.hexdigest(),
            size=self._size,
            index=digest_of(index),
            before=self._before,
            blocks=self._blocks,
        )
        return header, index, self._message_digest.digest

    def _close_block(self) -> None:
        if not self._open:
            return
        frame = self._compress(pack_block(self._open))
        number = len(self._blocks)
        self._blocks.append(Block(self._open[0].position, self._size, len(frame), _block_digest(frame)))
        # A checksum takes a tenth of a name's place. Two roots that share one cost a block read in vain.
        self._roots |= {(_checksum(subjects.root_of(message.subject)), number) for message in self._open}
        self._target.write(frame)
        self._digest.update(frame)
        self._size += len(frame)
        self._open, self._open_bytes = [], 0


class MessageDigest:
    """The digest of messages, independent of how they are stored."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, message: Stored) -> None:
        """Add a message."""
        parts = (message.subject.encode(), message.body, message.trace.encode())
        # With the lengths, so that no two different messages give the same bytes.
        sizes = ",".join(str(len(part)) for part in parts)
        self._digest.update(b"".join((f"{message.position}:{sizes};".encode(), *parts)))

    @property
    def digest(self) -> str:
        """The digest of all messages so far."""
        return self._digest.hexdigest()


def pack_block(messages: Sequence[Stored]) -> bytes:
    """Serialize a block, not yet compressed."""
    columns = _Columns(
        [message.subject for message in messages],
        [message.body for message in messages],
        [message.trace for message in messages],
    )
    return _encode(columns)


def unpack_block(header: Header, number: int, frame: bytes) -> list[Stored]:
    """Return the messages of a block. Raises `BadSegment`."""
    block = header.blocks[number]
    following = header.blocks[number + 1].first if number + 1 < len(header.blocks) else header.last + 1
    if len(frame) != block.size or _block_digest(frame) != block.digest:
        raise BadSegment(
            f"{header.name} is damaged in the archive: the block of positions {block.first} to "
            f"{following - 1} (blob {header.content}) is not what was sealed. {RESTORE}"
        )
    # Far above any block that is written here; it bounds the memory that one frame can take.
    columns = _decode(zstandard.ZstdDecompressor().decompress(frame, max_output_size=256 << 20))
    positions = range(block.first, block.first + len(columns.bodies))
    if positions.stop != following:
        raise BadSegment(f"{header.name}: a block holds other positions than its header says. {RESTORE}")
    return list(map(Stored, columns.subjects, positions, columns.bodies, columns.traces))


RESTORE = "Put the archive's files back from a backup"


def read_header(key: str, content: bytes) -> Header:
    """Decode a header and check it against its digest. Raises `BadSegment`."""
    if digest_of(content) != key:
        raise BadSegment(f"the archive's header {key} is damaged. {RESTORE}")
    try:
        header = _headers.decode(content)
    except msgspec.MsgspecError as error:
        raise BadSegment(f"the blob {key} is not a segment header: {error}. {RESTORE}") from error
    if header.form != FORM:
        raise BadSegment(f"{header.name} has form {header.form}, this version reads {FORM}: update Steadfast")
    return header


def write_header(header: Header) -> bytes:
    """Encode a header."""
    return msgspec.json.encode(header)


class Index:
    """Maps a root to the blocks of a segment that may hold its messages."""

    def __init__(self, packed: bytes) -> None:
        raw = zstandard.ZstdDecompressor().decompress(packed, max_output_size=1 << 30)
        self._raw = raw
        self._count = len(raw) // ENTRY_BYTES

    @property
    def size(self) -> int:
        """Size in memory in bytes."""
        return len(self._raw)

    def blocks(self, root: str) -> list[int]:
        """Return block numbers in ascending order. Some blocks may hold no message of the root."""
        wanted = _checksum(root).to_bytes(4, "big")
        at = bisect_left(range(self._count), wanted, key=lambda n: self._entry(n)[:4])
        numbers = []
        while at < self._count and (entry := self._entry(at))[:4] == wanted:
            numbers.append(int.from_bytes(entry[4:], "big"))
            at += 1
        return numbers

    def _entry(self, number: int) -> bytes:
        return self._raw[number * ENTRY_BYTES : (number + 1) * ENTRY_BYTES]


def _pack_index(roots: Iterable[tuple[int, int]]) -> bytes:
    # Sorted for the search in `Index.blocks`, and so that sealing a range again gives the same bytes.
    raw = b"".join(root.to_bytes(4, "big") + block.to_bytes(4, "big") for root, block in sorted(roots))
    return zstandard.ZstdCompressor(level=LEVEL).compress(raw)


def _checksum(root: str) -> int:
    return zlib.crc32(root.encode())


def _block_digest(frame: bytes) -> bytes:
    return hashlib.sha256(frame).digest()[:DIGEST_BYTES]


def _event_time(message: Stored) -> float:
    try:
        return codec.decode_envelope(message.body).at
    except codec.BadRecord:
        return 0.0


def block_numbers(header: Header, after: int) -> Iterator[int]:
    """Return the numbers of the blocks that hold positions above `after`, in order."""
    firsts = [block.first for block in header.blocks]
    number = max(bisect_left(firsts, after + 2) - 1, 0)
    return iter(range(number, len(firsts)))
