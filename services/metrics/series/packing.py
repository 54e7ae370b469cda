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
WORTH_BYTES = 64
"""Anything shorter is not compressed."""
PLAIN, PACKED = b"p", b"z"


def squeeze(body: bytes) -> bytes:
    """Compress bytes if that is worthwhile."""
    if len(body) < WORTH_BYTES:
        return PLAIN + body
    return PACKED + zstandard.ZstdCompressor(LEVEL).compress(body)


def release(body: bytes) -> bytes:
    """The inverse of `squeeze`."""
    return zstandard.ZstdDecompressor().decompress(body[1:]) if body[:1] == PACKED else body[1:]


def pack(numbers: Array) -> bytes:
    """Pack eight-byte numbers, grouping bytes of equal weight: neighbours differ only in the last ones."""
    return squeeze(numbers.view(np.uint8).reshape(-1, 8).T.tobytes())


def unpack_floats(body: bytes) -> Floats:
    """The inverse of `pack`."""
    return _unshuffled(body).view(np.float64)


def pack_integers(numbers: Integers) -> bytes:
    """Pack integers. Evenly growing ones take almost no space."""
    return pack(np.diff(numbers, prepend=0))


def unpack_integers(body: bytes) -> Integers:
    """The inverse of `pack_integers`."""
    return np.cumsum(_unshuffled(body).view(np.int64))


def _unshuffled(body: bytes) -> npt.NDArray[np.uint8]:
    plain = np.frombuffer(release(body), np.uint8)
    return np.ascontiguousarray(plain.reshape(8, -1).T).reshape(-1)
