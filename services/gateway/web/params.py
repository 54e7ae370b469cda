"""Query parameters: lowerCamelCase or snake_case, every value checked (REST spec, section 1)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime

from det_contracts.problems import invalid
from services.gateway.paging import Window

LARGEST = 2**63 - 1
_BOOLEANS = {"true": True, "1": True, "": True, "false": False, "0": False}
_UNSPECIFIED = ("", "UNSPECIFIED", "0")
_INNER_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_FRACTION = re.compile(r"\.(\d+)")
_ORDERS = {"": False, "UNSPECIFIED": False, "ASC": False, "DESC": True, "0": False, "1": False, "2": True}


class Params:
    """The query of one request, asked for by names in snake_case."""

    def __init__(self, items: Iterable[tuple[str, str]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in items:
            self._values.setdefault(_INNER_CAPITAL.sub("_", name).lower(), []).append(value)

    def text(self, name: str, default: str = "") -> str:
        """The last value given."""
        return self._values.get(name, [default])[-1]

    def texts(self, name: str) -> list[str]:
        """All values given."""
        return list(self._values.get(name, []))

    def integer(self, name: str, default: int = 0) -> int:
        """A whole number; raises `Refused` for anything else."""
        text = self.text(name)
        return _integer(name, text) if text else default

    def integers(self, name: str) -> list[int]:
        """Whole numbers; raises `Refused` for anything else."""
        return [_integer(name, text) for text in self.texts(name)]

    def number(self, name: str) -> float | None:
        """A finite number, or None when it is not given; raises `Refused` for anything else."""
        text = self.text(name)
        if not text:
            return None
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not math.isfinite(found):
            raise invalid(f"{name} must be a number, not '{text[:40]}'")
        return found

    def flag(self, name: str, default: bool | None = None) -> bool | None:
        """Yes, no, or `default` when it is not given."""
        if name not in self._values:
            return default
        try:
            return _BOOLEANS[self.text(name).lower()]
        except KeyError:
            raise invalid(f"{name} must be true or false, not '{self.text(name)}'") from None

    def names(self, name: str, prefix: str, known: Iterable[str]) -> list[str]:
        """Values of an enum without their prefix; "unspecified" counts as not given.

        Raises `Refused` for what is not known.
        """
        return enum_names(name, self.texts(name), prefix, known)

    def instant(self, name: str) -> float | None:
        """A time in RFC 3339 as seconds since the epoch; raises `Refused` for anything else."""
        text = self.text(name)
        if not text:
            return None
        # Python reads up to microseconds, the API has nanoseconds.
        trimmed = _FRACTION.sub(lambda m: "." + m[1][:6], text)
        try:
            at = datetime.fromisoformat(trimmed)
        except ValueError:
            raise invalid(f"{name} must be a time like 2023-08-01T12:00:00Z, not '{text}'") from None
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()

    def sort(self, known: Iterable[str], default: str = "ID") -> str:
        """What to sort by, without `SORT_BY_`; raises `Refused` for what is not known."""
        return (self.names("sort_by", "SORT_BY_", known) or [default])[-1]

    def window(self) -> Window:
        """Offset, limit and direction."""
        return Window(self.integer("offset"), self.integer("limit"), self.descending())

    def descending(self) -> bool:
        """The direction."""
        order = self.text("order_by").removeprefix("ORDER_BY_")
        if order not in _ORDERS:
            raise invalid(f"order_by must be ORDER_BY_ASC or ORDER_BY_DESC, not '{order}'")
        return _ORDERS[order]


def enum_names(name: str, given: Iterable[str], prefix: str, known: Iterable[str]) -> list[str]:
    """Values without their prefix; "unspecified" counts as not given.

    Raises `Refused` for what is not known.
    """
    found = [text.removeprefix(prefix) for text in given]
    found = [one for one in found if one not in _UNSPECIFIED]
    known = tuple(known)
    for one in found:
        if one not in known:
            raise invalid(f"{name} must be {prefix} and one of {', '.join(known)}, not '{one[:40]}'")
    return found


def _integer(name: str, text: str) -> int:
    try:
        found = int(text)
    except ValueError:
        raise invalid(f"{name} must be a whole number, not '{text[:40]}'") from None
    if not -LARGEST <= found <= LARGEST:
        raise invalid(f"{name} must be a number of 64 bits, not {text[:40]}")
    return found
