"""Training lengths: a number of batches, records or epochs, or without a unit."""

from __future__ import annotations

from typing import Any, Literal, cast

import msgspec

from det_contracts.expconf.faults import Faults, did_you_mean, format_value
from det_contracts.expconf.scalars import Integer, Node

Unit = Literal["batches", "records", "epochs"]
UNITS: tuple[Unit, ...] = ("batches", "records", "epochs")
MESSAGE = 'a length object must have one attribute named "batches", "records", or "epochs"'


class Length(msgspec.Struct, frozen=True):
    """A training length. `unit` is None if only the script knows what is counted."""

    count: int
    unit: Unit | None = None

    @classmethod
    def of(cls, value: object) -> Length:
        """Parse a length from a completed configuration: `{"batches": 100}`, or `100`."""
        if isinstance(value, int) and not isinstance(value, bool):
            return cls(value)
        if isinstance(value, dict) and len(value) == 1:
            ((unit, count),) = value.items()
            if unit in UNITS and isinstance(count, int):
                return cls(count, cast(Unit, unit))
        raise ValueError(f"{MESSAGE}, or be an integer; this one is {value!r}")

    def to_config(self) -> int | dict[str, int]:
        """Return the length in the form used in configurations."""
        return self.count if self.unit is None else {self.unit: self.count}


class LengthNode(Node, frozen=True):
    """A length of at least `low`. `bare` allows an integer without a unit. Two lengths are never merged."""

    low: int = 0
    bare: bool = False

    def read(self, value: Any, at: str, faults: Faults) -> Any:
        if self.bare and isinstance(value, (int, float)) and not isinstance(value, bool):
            return Integer(self.low).read(value, at, faults)
        named = {key: count for key, count in value.items() if count is not None} if _is_map(value) else {}
        if len(named) != 1 or not named.keys() <= set(UNITS):
            faults.add(at, f"{MESSAGE}; {_mistaken(value, len(named))}")
            return value
        ((unit, count),) = named.items()
        return {unit: Integer(self.low).read(count, f"{at}.{unit}", faults)}


def _is_map(value: object) -> bool:
    return isinstance(value, dict)


def _mistaken(value: object, named: int) -> str:
    """What is written instead of a length."""
    if not isinstance(value, dict):
        return f"this is {format_value(value)}"
    other = next((key for key in value if key not in UNITS), None)
    return f"this one has {named if other is None else format_value(other) + did_you_mean(other, UNITS)}"


PERIOD = LengthNode()
SEARCH_LENGTH = LengthNode(low=1, bare=True)
SEARCH_LENGTH_WITH_UNIT = LengthNode(low=1)
