"""A 65,536-bit map of the three-byte sequences in a text, with which a search can skip whole chunks."""

from __future__ import annotations

from typing import Any

import numpy as np

BITS = 1 << 16
_MIX = np.uint32(2654435761)


def trigrams(text: bytes) -> bytes:
    """The map of a text."""
    bits = np.zeros(BITS, bool)
    bits[_bit_numbers(text)] = True
    return np.packbits(bits).tobytes()


def can_contain(bitmap: bytes, part: bytes) -> bool:
    """False if the text cannot contain the part. True for parts shorter than three bytes."""
    bits = _bit_numbers(part)
    bitmap_bytes = np.frombuffer(bitmap, np.uint8)
    return bool(np.all(bitmap_bytes[bits >> 3] >> (7 - (bits & 7)) & 1))


def _bit_numbers(text: bytes) -> Any:
    bytes_ = np.frombuffer(text, np.uint8).astype(np.uint32)
    if len(bytes_) < 3:
        return np.zeros(0, np.int64)
    three = bytes_[:-2] << 16 | bytes_[1:-1] << 8 | bytes_[2:]
    # Multiplicative hashing: the upper half of the product is the best distributed.
    return (three * _MIX >> np.uint32(16)).astype(np.int64)
