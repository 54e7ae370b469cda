"""The 32-bit Mersenne Twister, as state that can be stored (Matsumoto and Nishimura, 1998).

Seeded with one word by the classic initialiser, so the stream is that of
`numpy.random.RandomState(seed)`; draws are those of the searchers spec, section 2.
"""

from __future__ import annotations

import struct
from itertools import pairwise

import msgspec

N, M = 624, 397
_UPPER, _LOWER, _MATRIX = 0x80000000, 0x7FFFFFFF, 0x9908B0DF
_WORD, _FOUR_WORDS, _WORDS = struct.Struct("<I"), struct.Struct("<4I"), struct.Struct(f"<{N}I")


class RngState(msgspec.Struct, frozen=True, gc=False):
    """Where a stream stands."""

    key: bytes
    """624 little-endian words."""
    position: int
    """Words of the key already drawn; 624 means that the key is used up."""


class Rng:
    """Draws from a stream; `state()` is where it stands. Lives within one step of a search."""

    def __init__(self, state: RngState) -> None:
        self._key = state.key
        self._position = state.position

    @classmethod
    def seeded(cls, seed: int) -> Rng:
        """A stream from one 32-bit word."""
        words = [seed & 0xFFFFFFFF]
        for index in range(1, N):
            previous = words[-1]
            words.append((1812433253 * (previous ^ (previous >> 30)) + index) & 0xFFFFFFFF)
        return cls(RngState(_WORDS.pack(*words), N))

    def state(self) -> RngState:
        """Where the stream stands now."""
        return RngState(self._key, self._position)

    def bits32(self) -> int:
        """The next tempered word."""
        position = self._position
        if position == N:
            self._key = _WORDS.pack(*_twist(_WORDS.unpack(self._key)))
            position = 0
        word: int = _WORD.unpack_from(self._key, 4 * position)[0]
        self._position = position + 1
        word ^= word >> 11
        word ^= (word << 7) & 0x9D2C5680
        word ^= (word << 15) & 0xEFC60000
        return word ^ (word >> 18)

    def bits64(self) -> int:
        """Two words, the first one high."""
        return (self.bits32() << 32) | self.bits32()

    def below(self, n: int) -> int:
        """An integer in [0, n), by rejection under the smallest mask; n = 1 draws nothing."""
        largest = n - 1
        if largest == 0:
            return 0
        mask = (1 << largest.bit_length()) - 1
        draw = self.bits32 if largest <= 0xFFFFFFFF else self.bits64
        while True:
            value = draw() & mask
            if value <= largest:
                return value

    def unit(self) -> float:
        """A float in [0, 1) of 53 bits."""
        high, low = self.bits32() >> 5, self.bits32() >> 6
        return (high * 67108864 + low) / 9007199254740992

    def uniform(self, low: float, high: float) -> float:
        """A float in [low, high)."""
        return low + (high - low) * self.unit()

    def request_id(self) -> str:
        """16 bytes from four words, marked as a UUID of version 4."""
        raw = bytearray(_FOUR_WORDS.pack(self.bits32(), self.bits32(), self.bits32(), self.bits32()))
        raw[6] = (raw[6] & 0x0F) | 0x40
        raw[8] = (raw[8] & 0x3F) | 0x80
        text = raw.hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _twist(words: tuple[int, ...]) -> list[int]:
    mixed = [
        (((high & _UPPER) | (low & _LOWER)) >> 1) ^ (_MATRIX if low & 1 else 0)
        for high, low in pairwise(words)
    ]
    fresh = [far ^ mix for far, mix in zip(words[M:], mixed, strict=False)]
    for index in range(N - M, N - 1):
        fresh.append(fresh[index + M - N] ^ mixed[index])
    # The last word wraps round to one that is fresh already.
    joined = (words[-1] & _UPPER) | (fresh[0] & _LOWER)
    fresh.append(fresh[M - 1] ^ (joined >> 1) ^ (_MATRIX if joined & 1 else 0))
    return fresh
