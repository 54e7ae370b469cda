"""A persistent map: versions share what did not change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar
from zlib import crc32

import msgspec

V = TypeVar("V")


class Table(msgspec.Struct, Generic[V], frozen=True, array_like=True):
    """Names and values in about sqrt(n) small dictionaries; a change copies only one.

    So `n` changes cost n * sqrt(n) in total, and each earlier version stays valid. It is encoded as is,
    without a hook. A name's bucket is the same in every process, unlike with `hash`.
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
        """The table with a name set to a value."""
        buckets = list(self.buckets)
        index = crc32(name.encode()) % len(buckets)
        bucket = buckets[index]
        count = self.count + (name not in bucket)
        buckets[index] = {**bucket, name: value}
        return Table(count, tuple(buckets if count <= len(buckets) ** 2 else _rehash(buckets)))

    def drop(self, name: str) -> Table[V]:
        """The table without a name, which must exist."""
        buckets = list(self.buckets)
        index = crc32(name.encode()) % len(buckets)
        bucket = buckets[index] = buckets[index].copy()
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
        """Every value, in no meaningful order, but the same for equal histories."""
        for bucket in self.buckets:
            yield from bucket.values()


def _rehash(buckets: list[dict[str, V]]) -> list[dict[str, V]]:
    """The same names, distributed over twice as many dictionaries."""
    larger: list[dict[str, V]] = [{} for _ in range(2 * len(buckets))]
    for bucket in buckets:
        for name, value in bucket.items():
            larger[crc32(name.encode()) % len(larger)][name] = value
    return larger
