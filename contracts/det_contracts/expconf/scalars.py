"""The leaves of the schema. Each reads one value, reports what is wrong with it, and merges two values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from det_contracts.expconf.faults import Faults, format_value


class Node(msgspec.Struct, frozen=True):
    """A node of the schema. None means "not set" and is never passed to a method."""

    def read(self, value: Any, at: str, faults: Faults) -> Any:
        """Return the normalized value. Errors are added to `faults` under the path `at`."""
        return value

    def merge(self, high: Any, low: Any) -> Any:
        """Merge both sides; `high` is the more specific one (experiment configuration spec, section 3)."""
        return high

    def fill(self, value: Any) -> Any:
        """Return the value with the schema's defaults filled in."""
        return value


class Anything(Node, frozen=True):
    """Arbitrary data. Maps are merged key by key at any depth."""

    def merge(self, high: Any, low: Any) -> Any:
        if not isinstance(high, dict) or not isinstance(low, dict):
            return low if high is None else high
        return low | {key: self.merge(item, low.get(key)) for key, item in high.items()}


class Text(Node, frozen=True):
    """A string. `fits` checks it, and `otherwise` is the message if the check fails."""

    fits: Callable[[str], bool] | None = None
    otherwise: str = ""

    def read(self, value: Any, at: str, faults: Faults) -> Any:
        if not isinstance(value, str):
            faults.add(at, f"must be a string, not {format_value(value)}")
        elif self.fits is not None and not self.fits(value):
            faults.add(at, self.otherwise)
        return value


class Boolean(Node, frozen=True):
    """A boolean."""

    def read(self, value: Any, at: str, faults: Faults) -> Any:
        if not isinstance(value, bool):
            faults.add(at, f"must be true or false, not {format_value(value)}")
        return value


class Integer(Node, frozen=True):
    """An integer between inclusive bounds. 1e3 counts as 1000."""

    low: int = -(2**63)
    high: int = 2**63 - 1

    def read(self, value: Any, at: str, faults: Faults) -> Any:
        # Some libraries write whole numbers as 1000.0 or 1e3, and users mean a count.
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            faults.add(at, f"must be an integer, not {format_value(value)}")
        elif value < self.low and self.high == 2**63 - 1:
            faults.add(at, f"must be at least {self.low}, not {value}")
        elif not self.low <= value <= self.high:
            faults.add(at, f"must be between {self.low} and {self.high}, not {value}")
        return value


class Number(Node, frozen=True):
    """A number that is at least `low` and greater than `above`."""

    low: float | None = None
    above: float | None = None

    def read(self, value: Any, at: str, faults: Faults) -> Any:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            faults.add(at, f"must be a number, not {format_value(value)}")
        elif self.low is not None and value < self.low:
            faults.add(at, f"must be at least {self.low:g}, not {value}")
        elif self.above is not None and value <= self.above:
            faults.add(at, f"must be greater than {self.above:g}, not {value}")
        return value


class Choice(Node, frozen=True):
    """One of a set of words."""

    words: tuple[str, ...]
    otherwise: str = ""

    def read(self, value: Any, at: str, faults: Faults) -> Any:
        if value not in self.words:
            among = ", ".join(self.words)
            faults.add(at, self.otherwise or f"must be one of {among}, not {format_value(value)}")
        return value


class Ignored(Node, frozen=True):
    """A key of old configurations. Its value is checked and then dropped."""

    inner: Node

    def read(self, value: Any, at: str, faults: Faults) -> Any:
        self.inner.read(value, at, faults)
        return None


class NullOnly(Node, frozen=True):
    """A key of old configurations that may only be null."""

    def read(self, value: Any, at: str, faults: Faults) -> Any:
        faults.add(at, "must be null")
        return None


class BadForm(Exception):
    """A value has none of the forms that a field accepts. The message lists the forms."""


class MultiForm(Node, frozen=True):
    """A field with several forms. `normal` converts each to the one that `inner` reads, or raises
    `BadForm`."""

    normal: Callable[[Any], Any]
    inner: Node

    def read(self, value: Any, at: str, faults: Faults) -> Any:
        try:
            normal = self.normal(value)
        except BadForm as unfit:
            faults.add(at, str(unfit))
            return value
        return self.inner.read(normal, at, faults)

    def merge(self, high: Any, low: Any) -> Any:
        return self.inner.merge(high, low)

    def fill(self, value: Any) -> Any:
        return self.inner.fill(value)
