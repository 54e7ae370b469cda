"""Stores arrays in few bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import zstandard

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]
LEVEL = 1
MIN_COMPRESSED_BYTES = 64
"""Anything shorter is not compressed."""
PLAIN, PACKED = b"p", b"z"


def compress_body(body: bytes) -> bytes:
    """Compress bytes if that is worthwhile."""
    if len(body) < MIN_COMPRESSED_BYTES:
        return PLAIN + body
    return PACKED + zstandard.ZstdCompressor(LEVEL).compress(body)


def decompress_body(body: bytes) -> bytes:
    """The inverse of `compress_body`."""
    return zstandard.ZstdDecompressor().decompress(body[1:]) if body[:1] == PACKED else body[1:]


def pack(numbers: Array) -> bytes:
    """Pack eight-byte numbers, grouping bytes of equal weight: neighbours differ only in the last ones."""
    return compress_body(numbers.view(np.uint8).reshape(-1, 8).T.tobytes())


def unpack_floats(body: bytes) -> Floats:
    """The inverse of `pack`."""
    return _unshuffle(body).view(np.float64)


def pack_integers(numbers: Integers) -> bytes:
    """Pack integers. Evenly growing ones take almost no space."""
    return pack(np.diff(numbers, prepend=0))


def unpack_integers(body: bytes) -> Integers:
    """The inverse of `pack_integers`."""
    return np.cumsum(_unshuffle(body).view(np.int64))


def _unshuffle(body: bytes) -> npt.NDArray[np.uint8]:
    plain = np.frombuffer(decompress_body(body), np.uint8)
    return np.ascontiguousarray(plain.reshape(8, -1).T).reshape(-1)
