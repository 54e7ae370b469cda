"""Arrays as few bytes."""

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
"""What is shorter is kept as it is."""
PLAIN, PACKED = b"p", b"z"


def squeeze(body: bytes) -> bytes:
    """The bytes compressed, where that pays."""
    if len(body) < WORTH_BYTES:
        return PLAIN + body
    return PACKED + zstandard.ZstdCompressor(LEVEL).compress(body)


def release(body: bytes) -> bytes:
    """What `squeeze` was given."""
    return zstandard.ZstdDecompressor().decompress(body[1:]) if body[:1] == PACKED else body[1:]


def pack(numbers: Array) -> bytes:
    """Numbers of eight bytes, their bytes of the same weight together: neighbours differ in the last only."""
    return squeeze(numbers.view(np.uint8).reshape(-1, 8).T.tobytes())


def unpack_floats(body: bytes) -> Floats:
    """What `pack` was given."""
    return _unshuffled(body).view(np.float64)


def pack_integers(numbers: Integers) -> bytes:
    """Integers that grow evenly cost next to nothing."""
    return pack(np.diff(numbers, prepend=0))


def unpack_integers(body: bytes) -> Integers:
    """What `pack_integers` was given."""
    return np.cumsum(_unshuffled(body).view(np.int64))


def _unshuffled(body: bytes) -> npt.NDArray[np.uint8]:
    plain = np.frombuffer(release(body), np.uint8)
    return np.ascontiguousarray(plain.reshape(8, -1).T).reshape(-1)
