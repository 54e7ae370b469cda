"""The values of one metric in the order of their reports, as numbers or else as originally reported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from services.metrics.series.packing import Flags, Floats, compress_body, decompress_body, pack, unpack_floats
from services.metrics.values import NON_FINITE_VALUES, as_number

EXACT = 2**53
"""Integers up to this one are stored as floating-point numbers without loss."""
NON_FINITE_TEXTS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


@dataclass(frozen=True)
class Column:
    """Values of one metric."""

    numbers: Floats
    """NaN also stands for values that are not numbers."""
    integer_mask: Flags | None = None
    """Which values were reported as integers; None: none."""
    raw_values: list[Any] | None = None
    """All values as reported, if not all of them are numbers."""

    def __len__(self) -> int:
        return len(self.numbers)

    def is_number(self) -> Flags:
        """Which values are numbers, including NaN and infinities."""
        if self.raw_values is None:
            return np.ones(len(self), np.bool_)
        return np.array([as_number(value) is not None for value in self.raw_values], np.bool_)

    def value(self, index: int) -> Any:
        """One value as reported."""
        if self.raw_values is not None:
            return self.raw_values[index]
        number = float(self.numbers[index])
        # A script that reports 3 reads 3 again, and not 3.0.
        if self.integer_mask is not None and self.integer_mask[index]:
            return int(number)
        return NON_FINITE_TEXTS.get(str(number), number)

    def values(self) -> list[Any]:
        """All values as reported."""
        if self.raw_values is not None:
            return self.raw_values
        if self.integer_mask is None and np.isfinite(self.numbers).all():
            plain: list[Any] = self.numbers.tolist()
            return plain
        return [self.value(index) for index in range(len(self))]

    def take(self, indexes: Any) -> Column:
        """The values at an index array, a mask or a slice."""
        raw_values = self.raw_values
        if raw_values is not None:
            raw_values = [raw_values[n] for n in np.arange(len(self))[indexes]]
        return Column(
            self.numbers[indexes],
            None if self.integer_mask is None else self.integer_mask[indexes],
            raw_values,
        )

    def without_texts(self) -> Column:
        """The same numbers. Of all other values, which may be of any size, only the last is kept."""
        if self.raw_values is None:
            return self
        last = len(self) - 1
        numbers = self.is_number().tolist()
        raw_values = [
            value if is_number or index == last else ""
            for index, (value, is_number) in enumerate(zip(self.raw_values, numbers, strict=True))
        ]
        return Column(self.numbers, raw_values=raw_values)

    def normalized(self) -> Column:
        """The same column without data that only its neighbours needed."""
        if self.raw_values is not None:
            return column(self.raw_values)
        return self if self.integer_mask is None or self.integer_mask.any() else Column(self.numbers)


def column(values: Sequence[Any]) -> Column:
    """A column of values in transport form: JSON, with NaN and infinities as text."""
    kinds = set(map(type, values))
    if kinds == {float}:
        return Column(np.array(values, np.float64))
    plain = all(_is_plain(value) for value in values)
    numbers = np.fromiter((_float(value) for value in values), np.float64, len(values))
    if not plain:
        return Column(numbers, raw_values=list(values))
    integer_mask = np.fromiter((type(value) is int for value in values), np.bool_, len(values))
    return Column(numbers, integer_mask if integer_mask.any() else None)


def _is_plain(value: Any) -> bool:
    kind = type(value)
    return (
        kind is float
        # A larger integer is kept as reported: as a double it would come back as another number.
        or (kind is int and -EXACT <= value <= EXACT)
        or (kind is str and value in NON_FINITE_VALUES)
    )


def _float(value: Any) -> float:
    number = as_number(value)
    return np.nan if number is None else number


def join(columns: Iterable[Column]) -> Column:
    """Concatenate columns."""
    parts = list(columns)
    raw_values: list[Any] | None = None
    if any(part.raw_values is not None for part in parts):
        raw_values = [value for part in parts for value in part.values()]
    integer_mask = None
    if raw_values is None and any(part.integer_mask is not None for part in parts):
        integer_mask = np.concatenate([_integer_mask(part) for part in parts])
    return Column(np.concatenate([part.numbers for part in parts]), integer_mask, raw_values)


def _integer_mask(part: Column) -> Flags:
    return np.zeros(len(part), np.bool_) if part.integer_mask is None else part.integer_mask


class Packed(msgspec.Struct, frozen=True, array_like=True):
    """A column as bytes."""

    count: int
    numbers: bytes | None = None
    integer_mask: bytes | None = None
    raw_values: bytes | None = None

    @classmethod
    def of(cls, column: Column) -> Packed:
        """Pack a column."""
        if column.raw_values is not None:
            return cls(len(column), raw_values=compress_body(msgspec.json.encode(column.raw_values)))
        integer_mask = (
            None if column.integer_mask is None else compress_body(np.packbits(column.integer_mask).tobytes())
        )
        return cls(len(column), pack(column.numbers), integer_mask)

    def column(self) -> Column:
        """Unpack the column."""
        if self.raw_values is not None:
            return column(msgspec.json.decode(decompress_body(self.raw_values)))
        if self.numbers is None:
            raise ValueError("a packed column holds numbers or others, and this one neither")
        integer_mask = None
        if self.integer_mask is not None:
            bits = np.frombuffer(decompress_body(self.integer_mask), np.uint8)
            integer_mask = np.unpackbits(bits, count=self.count).astype(np.bool_)
        return Column(unpack_floats(self.numbers), integer_mask)
