"""The 32-bit Mersenne Twister, as state that can be stored (Matsumoto and Nishimura, 1998).

Seeded with one word by the classic initialiser, so the stream is that of
`numpy.random.RandomState(seed)`; draws are those of the searchers spec, section 2.
"""

from __future__ import annotations

import struct
import uuid

import msgspec

N, M = 624, 397
_UPPER, _LOWER, _MATRIX = 0x80000000, 0x7FFFFFFF, 0x9908B0DF
_WORD, _WORDS = struct.Struct("<I"), struct.Struct(f"<{N}I")


class RngState(msgspec.Struct, frozen=True):
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
        if self._position == N:
            self._key = _WORDS.pack(*_twist(_WORDS.unpack(self._key)))
            self._position = 0
        word: int = _WORD.unpack_from(self._key, 4 * self._position)[0]
        self._position += 1
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
        raw = bytearray(struct.pack("<4I", *(self.bits32() for _ in range(4))))
        raw[6] = (raw[6] & 0x0F) | 0x40
        raw[8] = (raw[8] & 0x3F) | 0x80
        return str(uuid.UUID(bytes=bytes(raw)))


def _twist(words: tuple[int, ...]) -> list[int]:
    fresh = list(words)
    for index in range(N):
        joined = (fresh[index] & _UPPER) | (fresh[(index + 1) % N] & _LOWER)
        fresh[index] = fresh[(index + M) % N] ^ (joined >> 1) ^ (_MATRIX if joined & 1 else 0)
    return fresh
