"""The values of one metric in the order of their reports, as numbers or else as originally reported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from services.metrics.series.packing import Flags, Floats, pack, release, squeeze, unpack_floats
from services.metrics.values import SPELLED, number

EXACT = 2**53
"""Integers up to this one are stored as floating-point numbers without loss."""
SPELLING = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


@dataclass(frozen=True)
class Column:
    """Values of one metric."""

    numbers: Floats
    """NaN also stands for values that are not numbers."""
    whole: Flags | None = None
    """Which values were reported as integers; None: none."""
    others: list[Any] | None = None
    """All values as reported, if not all of them are numbers."""

    def __len__(self) -> int:
        return len(self.numbers)

    def is_number(self) -> Flags:
        """Which values are numbers, including NaN and infinities."""
        if self.others is None:
            return np.ones(len(self), np.bool_)
        return np.array([number(value) is not None for value in self.others], np.bool_)

    def value(self, place: int) -> Any:
        """One value as reported."""
        if self.others is not None:
            return self.others[place]
        found = float(self.numbers[place])
        if self.whole is not None and self.whole[place]:
            return int(found)
        return SPELLING.get(str(found), found)

    def values(self) -> list[Any]:
        """All values as reported."""
        if self.others is not None:
            return self.others
        if self.whole is None and np.isfinite(self.numbers).all():
            plain: list[Any] = self.numbers.tolist()
            return plain
        return [self.value(place) for place in range(len(self))]

    def take(self, places: Any) -> Column:
        """The values at an index array, a mask or a slice."""
        others = self.others
        if others is not None:
            others = [others[n] for n in np.arange(len(self))[places]]
        return Column(self.numbers[places], None if self.whole is None else self.whole[places], others)

    def settled(self) -> Column:
        """The same column without data that only its neighbours needed."""
        if self.others is not None:
            return column(self.others)
        return self if self.whole is None or self.whole.any() else Column(self.numbers)


def column(values: Sequence[Any]) -> Column:
    """A column of values in transport form: JSON, with NaN and infinities as text."""
    kinds = set(map(type, values))
    if kinds == {float}:
        return Column(np.array(values, np.float64))
    plain = all(_is_plain(value) for value in values)
    numbers = np.fromiter((_float(value) for value in values), np.float64, len(values))
    if not plain:
        return Column(numbers, others=list(values))
    whole = np.fromiter((type(value) is int for value in values), np.bool_, len(values))
    return Column(numbers, whole if whole.any() else None)


def _is_plain(value: Any) -> bool:
    kind = type(value)
    return kind is float or (kind is int and -EXACT <= value <= EXACT) or (kind is str and value in SPELLED)


def _float(value: Any) -> float:
    found = number(value)
    return np.nan if found is None else found


def join(columns: Iterable[Column]) -> Column:
    """Concatenate columns."""
    parts = list(columns)
    others: list[Any] | None = None
    if any(part.others is not None for part in parts):
        others = [value for part in parts for value in part.values()]
    whole = None
    if others is None and any(part.whole is not None for part in parts):
        whole = np.concatenate([_whole(part) for part in parts])
    return Column(np.concatenate([part.numbers for part in parts]), whole, others)


def _whole(part: Column) -> Flags:
    return np.zeros(len(part), np.bool_) if part.whole is None else part.whole


class Packed(msgspec.Struct, frozen=True, array_like=True):
    """A column as bytes."""

    count: int
    numbers: bytes | None = None
    whole: bytes | None = None
    others: bytes | None = None

    @classmethod
    def of(cls, column: Column) -> Packed:
        """Pack a column."""
        if column.others is not None:
            return cls(len(column), others=squeeze(msgspec.json.encode(column.others)))
        whole = None if column.whole is None else squeeze(np.packbits(column.whole).tobytes())
        return cls(len(column), pack(column.numbers), whole)

    def column(self) -> Column:
        """Unpack the column."""
        if self.others is not None:
            return column(msgspec.json.decode(release(self.others)))
        if self.numbers is None:
            raise ValueError("a packed column holds numbers or others, and this one neither")
        whole = None
        if self.whole is not None:
            bits = np.frombuffer(release(self.whole), np.uint8)
            whole = np.unpackbits(bits, count=self.count).astype(np.bool_)
        return Column(unpack_floats(self.numbers), whole)
