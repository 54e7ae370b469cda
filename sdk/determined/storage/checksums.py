"""Block checksums of a checkpoint's files, kept next to it in an object store.

A block is one part of an upload, so computing checksums needs no extra pass over the data, and a download can
tell which of its ranges are intact. CRC-32 (at 18 GB/s) detects accidental damage; it is not a signature.
"""

from collections.abc import Mapping
from typing import BinaryIO

import msgspec

from determined.storage.progress import Meter

try:
    from isal.isal_zlib import crc32
except ImportError:
    # Computes the same sums at an eighth of the speed.
    from zlib import crc32

__all__ = ["Blocks", "SummedReader", "crc32", "decode", "encode", "good_blocks"]

_CHUNK_BYTES = 256 << 10


class Blocks(msgspec.Struct, frozen=True, array_like=True):
    """Checksums of one file."""

    size: int
    """Size of the file in bytes."""
    block_size: int
    crcs: list[int]
    """Checksum of each block, in order. The last block may be shorter."""

    def fit(self, size: int) -> bool:
        """Return whether the checksums are for a file of this size."""
        return self.size == size and self.block_size > 0 and len(self.crcs) == -(-size // self.block_size)

    def expected(self, offset: int) -> int:
        """Return the checksum of the block that starts at `offset`."""
        return self.crcs[offset // self.block_size]


class SummedReader:
    """Reads a file once from start to end, block by block, and computes its checksums."""

    def __init__(self, file: BinaryIO, size: int, block_size: int, meter: Meter) -> None:
        self._file = file
        self._size = size
        self._block_size = block_size
        self._meter = meter
        self._crcs: list[int] = []
        self._position = 0

    def read(self, size_bytes: int = -1) -> bytes:
        """Return the next bytes, at most up to the end of the block.

        Raises OSError if the file ends early.
        """
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
        """Return the checksums of the data read."""
        return Blocks(self._size, self._block_size, self._crcs)


def good_blocks(file: BinaryIO, blocks: Blocks) -> set[int]:
    """Return the offsets of the blocks that a file on disk, open at its start, already contains."""
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
    """Encode the checksums of one upload as the content of an object."""
    return msgspec.json.encode(files)


def decode(content: bytes) -> dict[str, Blocks]:
    """Decode the checksums of one upload, by file. Raises ValueError for other content."""
    return msgspec.json.decode(content, type=dict[str, Blocks])
