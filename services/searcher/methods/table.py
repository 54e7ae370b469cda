"""A map whose next version shares with it what did not change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar
from zlib import crc32

import msgspec

V = TypeVar("V")


class Table(msgspec.Struct, Generic[V], frozen=True, array_like=True):
    """Names and values in about sqrt(n) small dictionaries, of which a change copies one.

    So `n` changes cost n * sqrt(n) in all and each earlier version stays true. It is encoded as it
    stands, without a hook; a name's place is the same in every process, unlike `hash`.
    """

    count: int = 0
    buckets: tuple[dict[str, V], ...] = ({},)

    @classmethod
    def of(cls, values: Mapping[str, V]) -> Table[V]:
        """A table with these values."""
        table = cls()
        for name, value in values.items():
            table = table.put(name, value)
        return table

    def put(self, name: str, value: V) -> Table[V]:
        """With a value under a name, in place of the one that stood there."""
        buckets = list(self.buckets)
        place = crc32(name.encode()) % len(buckets)
        bucket = buckets[place]
        count = self.count + (name not in bucket)
        buckets[place] = {**bucket, name: value}
        return Table(count, tuple(buckets if count <= len(buckets) ** 2 else _spread(buckets)))

    def drop(self, name: str) -> Table[V]:
        """Without a name, which must be there."""
        buckets = list(self.buckets)
        place = crc32(name.encode()) % len(buckets)
        bucket = buckets[place] = buckets[place].copy()
        del bucket[name]
        return Table(self.count - 1, tuple(buckets))

    def __len__(self) -> int:
        return self.count

    def __contains__(self, name: str) -> bool:
        return self.count > 0 and name in self.buckets[crc32(name.encode()) % len(self.buckets)]

    def __getitem__(self, name: str) -> V:
        return self.buckets[crc32(name.encode()) % len(self.buckets)][name]

    def __iter__(self) -> Iterator[str]:
        for bucket in self.buckets:
            yield from bucket

    def values(self) -> Iterator[V]:
        """Every value, in no order that means anything; the same for equal histories."""
        for bucket in self.buckets:
            yield from bucket.values()


def _spread(buckets: list[dict[str, V]]) -> list[dict[str, V]]:
    """The same names over twice as many dictionaries."""
    wider: list[dict[str, V]] = [{} for _ in range(2 * len(buckets))]
    for bucket in buckets:
        for name, value in bucket.items():
            wider[crc32(name.encode()) % len(wider)][name] = value
    return wider
