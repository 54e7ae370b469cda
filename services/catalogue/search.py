"""Filters and sort orders of the experiments page, written as JSON (REST spec, section 3).

A filter is a tree: `{"filterGroup": {"kind": "group", "conjunction": "and", "children": [...]}}`, whose
leaves are `{"kind": "field", "columnName": "name", "operator": "contains", "value": "x"}`. Columns are those
of `services.catalogue.columns`.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from det_contracts.problems import invalid
from services.catalogue.columns.experiments import COLUMNS
from services.catalogue.columns.values import Values, known

Lookup = Mapping[str, Values]
Ids = list[int]
Narrow = Callable[[Lookup, Ids], Ids]
Test = Callable[[Any], bool]
DEEPEST = 8
_ACTIVE = ("active", "queued", "pulling", "starting", "running")


class Wish(msgspec.Struct, frozen=True):
    """A parsed filter and sort order."""

    narrow: Narrow
    orders: tuple[tuple[str, bool], ...]
    """Columns, and whether each is descending. The first is the primary sort key."""
    names: frozenset[str]
    """The columns that the filter and the order use."""

    def answer(self, lookup: Lookup, ids: Ids) -> Ids:
        """The matching ids among `ids` (ascending), sorted; newest first if no order is given."""
        found = self.narrow(lookup, ids)
        if not self.orders:
            return found[::-1]
        for column, descending in reversed(self.orders):
            found = _sorted(lookup[column], found, descending)
        return found


def read(text: str, sort: str = "") -> Wish:
    """Parse a filter in JSON and an order like `column=asc,column=desc`. Raises `Refused` (400)."""
    names: set[str] = set()
    narrow = _tree(text, names)
    orders = tuple(_order(part) for part in sort.split(",") if part)
    return Wish(narrow, orders, frozenset(names.union(column for column, _ in orders)))


def _tree(text: str, names: set[str]) -> Narrow:
    if not text:
        return lambda _, ids: ids
    try:
        tree = json.loads(text)
    except ValueError as error:
        raise invalid(f"filter: this is not valid JSON: {error}") from None
    if not isinstance(tree, dict):
        raise invalid("filter: a JSON object is expected")
    inner = _node(tree.get("filterGroup", {"kind": "group", "children": []}), DEEPEST, names)
    if tree.get("showArchived", True):
        return inner
    names.add("archived")
    return lambda lookup, ids: inner(lookup, _fitting(lookup["archived"], ids, lambda value: not value))


def _node(node: Any, deep: int, names: set[str]) -> Narrow:
    if not isinstance(node, dict) or deep < 0:
        raise invalid(f"filter: an object with the key kind is expected, at most {DEEPEST} deep")
    if node.get("kind") == "field":
        return _field(node, names)
    children = [_node(child, deep - 1, names) for child in node.get("children") or []]
    whole = {"and": _all, "or": _any}.get(str(node.get("conjunction", "and")))
    if whole is None:
        raise invalid(f"filter: conjunction must be and or or, not {node.get('conjunction')!r}")
    return whole(children) if children else lambda _, ids: ids


def _all(children: Sequence[Narrow]) -> Narrow:
    def narrow(lookup: Lookup, ids: Ids) -> Ids:
        for child in children:
            ids = child(lookup, ids)
        return ids

    return narrow


def _any(children: Sequence[Narrow]) -> Narrow:
    def narrow(lookup: Lookup, ids: Ids) -> Ids:
        fit = {id for child in children for id in child(lookup, ids)}
        return [id for id in ids if id in fit]

    return narrow


def _field(node: dict[str, Any], names: set[str]) -> Narrow:
    name, wanted = known(str(node.get("columnName", ""))), node.get("value")
    sign = str(node.get("operator", "="))
    make = OPERATORS.get(sign)
    if make is None:
        raise invalid(f"filter: operator must be one of {', '.join(OPERATORS)}, not {sign!r}")
    names.add(name)
    wanted = _meant(name, wanted)
    fits, number = make(wanted), _number(wanted)
    if sign in ORDERED and number is not None:
        holds = ORDERED[sign]
        return lambda lookup, ids: _beyond(lookup[name], ids, holds, number, fits)
    return lambda lookup, ids: _fitting(lookup[name], ids, fits)


def _fitting(values: Values, ids: Ids, fits: Test) -> Ids:
    """Test each distinct value once. A missing value is tested as None."""
    there = list(map(values.get, ids))
    good = {value for value in set(there) if fits(value)}
    return [id for id, value in zip(ids, there, strict=True) if value in good]


def _beyond(values: Values, ids: Ids, holds: Callable[[Any, Any], bool], number: float, fits: Test) -> Ids:
    """Compare numbers directly, because most of them are distinct."""
    there = list(map(values.get, ids))
    try:
        if holds is operator.lt:
            return [id for id, value in zip(ids, there, strict=True) if value is not None and value < number]
        if holds is operator.gt:
            return [id for id, value in zip(ids, there, strict=True) if value is not None and value > number]
        return [
            id for id, value in zip(ids, there, strict=True) if value is not None and holds(value, number)
        ]
    except TypeError:
        return [id for id, value in zip(ids, there, strict=True) if fits(value)]


def _meant(name: str, wanted: Any) -> Any:
    """Convert times to seconds since the epoch, and ACTIVE to all the states displayed in its place."""
    if not isinstance(wanted, str):
        return wanted
    if name == "state":
        wanted = wanted.removeprefix("STATE_")
        return _ACTIVE if wanted.lower() == "active" else wanted
    if name in COLUMNS and COLUMNS[name].type.word == "DATE" and wanted:
        try:
            at = datetime.fromisoformat(wanted)
        except ValueError:
            raise invalid(
                f"filter: {name} must be a time like 2023-08-01T12:00:00Z, not '{wanted}'"
            ) from None
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    return wanted


def _number(wanted: Any) -> float | None:
    try:
        return float(wanted)
    except (TypeError, ValueError):
        return None


def _contains(wanted: Any) -> Test:
    low = str(wanted).lower()

    def fits(value: Any) -> bool:
        if isinstance(value, tuple | list):
            return any(low == str(one).lower() for one in value)
        return value is not None and low in str(value).lower()

    return fits


def _equal(wanted: Any) -> Test:
    if isinstance(wanted, tuple):
        return lambda value: str(value).lower() in wanted
    low, number = str(wanted).lower(), _number(wanted)

    def fits(value: Any) -> bool:
        if isinstance(value, str):
            return value.lower() == low
        if isinstance(value, bool):
            return low == str(value).lower()
        if isinstance(value, int | float):
            return value == number
        return bool(value == wanted)

    return fits


def _ordered(holds: Callable[[Any, Any], bool]) -> Callable[[Any], Test]:
    def make(wanted: Any) -> Test:
        number = _number(wanted)

        def fits(value: Any) -> bool:
            if isinstance(value, int | float):
                return number is not None and holds(value, number)
            return isinstance(value, str) and isinstance(wanted, str) and holds(value, wanted)

        return fits

    return make


def _not(make: Callable[[Any], Test]) -> Callable[[Any], Test]:
    def opposite(wanted: Any) -> Test:
        fits = make(wanted)
        return lambda value: not fits(value)

    return opposite


def _empty(_: Any) -> Test:
    return lambda value: value is None or value in ("", (), [])


ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
OPERATORS: dict[str, Callable[[Any], Test]] = {
    "=": _equal,
    "!=": _not(_equal),
    "contains": _contains,
    "notContains": _not(_contains),
    "isEmpty": _empty,
    "notEmpty": _not(_empty),
    **{sign: _ordered(holds) for sign, holds in ORDERED.items()},
}


def _order(part: str) -> tuple[str, bool]:
    column, _, direction = part.partition("=")
    if direction not in ("", "asc", "desc"):
        raise invalid(f"sort: write COLUMN=asc or COLUMN=desc, not '{part}'")
    return known(column), direction == "desc"


def _sorted(values: Values, ids: Ids, descending: bool) -> Ids:
    """Sort numbers before texts, and texts without regard to case; missing values come last."""
    get = values.get
    there = [id for id in ids if get(id) not in _NOTHING]
    nothing = [id for id in ids if get(id) in _NOTHING]
    if there and not isinstance(get(there[0]), str | tuple):
        try:
            return [*sorted(there, key=get, reverse=descending), *nothing]  # type: ignore[arg-type]
        except TypeError:
            pass
    return [*sorted(there, key=lambda id: _rank(get(id)), reverse=descending), *nothing]


_NOTHING = (None, ())


def _rank(value: Any) -> tuple[bool, Any]:
    if isinstance(value, int | float):
        return (False, value)
    return (True, (", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)).casefold())
