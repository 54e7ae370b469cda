"""The 32-bit Mersenne Twister, with storable state (Matsumoto and Nishimura, 1998).

Seeded with one word by the classic initialiser, so the stream is that of `numpy.random.RandomState(seed)`.
Draws follow the searchers spec, section 2.
"""

from __future__ import annotations

import functools
import struct
from functools import lru_cache

import msgspec

N, M = 624, 397
_UPPER, _LOWER, _MATRIX = 0x80000000, 0x7FFFFFFF, 0x9908B0DF
_FOUR_WORDS, _WORDS = struct.Struct("<4I"), struct.Struct(f"<{N}I")


def _lanes(word: int) -> int:
    return int.from_bytes(word.to_bytes(4, "little") * N, "little")


_UPPERS, _LOWERS, _ONES = _lanes(_UPPER), _lanes(_LOWER), _lanes(1)


class RngState(msgspec.Struct, frozen=True, gc=False):
    """The position in a stream."""

    key: bytes
    """624 little-endian words."""
    position: int
    """Number of words of the key already drawn; 624 means that the key is used up."""


class Rng:
    """Draws from a stream; `state()` returns its position. Lives within one step of a search."""

    def __init__(self, state: RngState) -> None:
        self._key = state.key
        self._position = state.position

    @classmethod
    def seeded(cls, seed: int) -> Rng:
        """A stream seeded with one 32-bit word."""
        return cls(_seeded(seed & 0xFFFFFFFF))

    def state(self) -> RngState:
        """The current position in the stream."""
        return RngState(self._key, self._position)

    def bits32(self) -> int:
        """The next tempered word."""
        position = self._position
        if position == N:
            self._key, position = _twist(self._key), 0
        self._position = position + 1
        return _tempered(self._key)[position]

    def bits64(self) -> int:
        """Two words, the first one high."""
        return (self.bits32() << 32) | self.bits32()

    def below(self, n: int) -> int:
        """An integer in [0, n), by rejection under the smallest mask. n = 1 draws nothing."""
        largest = n - 1
        if largest == 0:
            return 0
        mask = (1 << largest.bit_length()) - 1
        draw = self.bits32 if largest <= 0xFFFFFFFF else self.bits64
        while True:
            # Rejected and drawn again rather than reduced by `%`, which would favour small numbers and use
            # another number of words than the spec.
            value = draw() & mask
            if value <= largest:
                return value

    def unit(self) -> float:
        """A float in [0, 1) with 53 random bits."""
        # 27 and 26 bits: as many as a double has, and what `numpy.random.RandomState` draws.
        high, low = self.bits32() >> 5, self.bits32() >> 6
        return (high * 67108864 + low) / 9007199254740992

    def uniform(self, low: float, high: float) -> float:
        """A float in [low, high)."""
        return low + (high - low) * self.unit()

    def request_id(self) -> str:
        """16 bytes from four words, marked as a version 4 UUID."""
        raw = bytearray(_FOUR_WORDS.pack(self.bits32(), self.bits32(), self.bits32(), self.bits32()))
        raw[6] = (raw[6] & 0x0F) | 0x40
        raw[8] = (raw[8] & 0x3F) | 0x80
        text = raw.hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


@functools.lru_cache(maxsize=64)
def _seeded(word: int) -> RngState:
    """The state of a new stream.

    Cached: this takes half a millisecond, and each experiment starts three times.
    """
    words = [word]
    for index in range(1, N):
        previous = words[-1]
        words.append((1812433253 * (previous ^ (previous >> 30)) + index) & 0xFFFFFFFF)
    return RngState(_WORDS.pack(*words), N)


def _twist(key: bytes) -> bytes:
    """The key that follows a used-up one. All words are computed at once, as lanes of one large integer."""
    words = int.from_bytes(key, "little")
    joined = (words & _UPPERS) | ((words >> 32) & _LOWERS)
    mixed = ((joined >> 1) & _LOWERS) ^ ((joined & _ONES) * _MATRIX)
    # Each new word is used N - M words later, so they are computed in runs of that length.
    first = (words >> 32 * M) ^ _cut(mixed, 0, N - M)
    second = first ^ _cut(mixed, N - M, 2 * (N - M))
    third = _cut(second, 0, 2 * M - N - 1) ^ _cut(mixed, 2 * (N - M), N - 1)
    fresh = first | second << 32 * (N - M) | third << 64 * (N - M)
    # The last word wraps around to the first new one.
    last = (_cut(words, N - 1, N) & _UPPER) | (fresh & _LOWER)
    last = _cut(fresh, M - 1, M) ^ (last >> 1) ^ (last & 1) * _MATRIX
    return (fresh | last << 32 * (N - 1)).to_bytes(4 * N, "little")


def _cut(lanes: int, begin: int, end: int) -> int:
    return (lanes >> 32 * begin) & ((1 << 32 * (end - begin)) - 1)


@lru_cache(maxsize=32)
def _tempered(key: bytes) -> tuple[int, ...]:
    """The words of a key after tempering."""
    words = int.from_bytes(key, "little")
    words ^= (words >> 11) & _lanes(0x1FFFFF)
    words ^= (words << 7) & _lanes(0x9D2C5680)
    words ^= (words << 15) & _lanes(0xEFC60000)
    words ^= (words >> 18) & _lanes(0x3FFF)
    return _WORDS.unpack(words.to_bytes(4 * N, "little"))
