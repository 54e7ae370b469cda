"""Checksums of the blocks of a checkpoint's files, kept beside it in an object store.

A block is one part of an upload, so checksums cost no second look at the data, and a download can tell
which of its ranges are good. CRC-32 finds accidents, 18 GB/s; it is no signature.
"""

from collections.abc import Mapping
from typing import BinaryIO

import msgspec

from determined.storage.progress import Meter

try:
    from isal.isal_zlib import crc32
except ImportError:
    # The same sums, an eighth as fast.
    from zlib import crc32

__all__ = ["Blocks", "SummedReader", "crc32", "decode", "encode", "good_blocks"]

_CHUNK_BYTES = 256 << 10


class Blocks(msgspec.Struct, frozen=True, array_like=True):
    """Checksums of one file."""

    size: int
    """Bytes of the file."""
    block_size: int
    crcs: list[int]
    """Of each block in order, the last one being shorter."""

    def fit(self, size: int) -> bool:
        """Say whether these are checksums of a file of this many bytes."""
        return self.size == size and self.block_size > 0 and len(self.crcs) == -(-size // self.block_size)

    def expected(self, offset: int) -> int:
        """Return the checksum of the block that begins at `offset`."""
        return self.crcs[offset // self.block_size]


class SummedReader:
    """A file that is read front to back once, block by block, and leaves its checksums."""

    def __init__(self, file: BinaryIO, size: int, block_size: int, meter: Meter) -> None:
        self._file = file
        self._size = size
        self._block_size = block_size
        self._meter = meter
        self._crcs: list[int] = []
        self._position = 0

    def read(self, size_bytes: int = -1) -> bytes:
        """Return the next bytes; never more than what is left of the block. OSError if it ends early."""
        left = self._block_size - self._position % self._block_size
        data = self._file.read(left if size_bytes < 0 else min(left, size_bytes))
        if not data:
            if self._position < self._size and size_bytes:
                name = getattr(self._file, "name", "a file")
                raise OSError(
                    f"{name} became shorter while it was stored: {self._position} of {self._size} bytes"
                )
            return data
        if not self._position % self._block_size:
            self._crcs.append(0)
        self._crcs[-1] = crc32(data, self._crcs[-1])
        self._position += len(data)
        self._meter.add(len(data))
        return data

    def blocks(self) -> Blocks:
        """Return the checksums of what was read."""
        return Blocks(self._size, self._block_size, self._crcs)


def good_blocks(file: BinaryIO, blocks: Blocks) -> set[int]:
    """Return the offsets of the blocks that a file on disk, open at its beginning, already holds."""
    buffer = memoryview(bytearray(min(_CHUNK_BYTES, blocks.block_size)))
    return {
        offset
        for offset in range(0, blocks.size, blocks.block_size)
        if _has_block(file, min(blocks.block_size, blocks.size - offset), blocks.expected(offset), buffer)
    }


def _has_block(file: BinaryIO, length: int, expected: int, buffer: memoryview) -> bool:
    crc = 0
    while length and (count := file.readinto(buffer[:length])):  # type: ignore[attr-defined]
        crc = crc32(buffer[:count], crc)
        length -= count
    return not length and crc == expected


def encode(files: Mapping[str, Blocks]) -> bytes:
    """Return the content of an object that keeps the checksums of one upload."""
    return msgspec.json.encode(files)


def decode(content: bytes) -> dict[str, Blocks]:
    """Return the checksums of one upload, by file; ValueError if this is something else."""
    return msgspec.json.decode(content, type=dict[str, Blocks])
