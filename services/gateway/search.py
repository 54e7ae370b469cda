"""Filters and orders of the experiments page, written as JSON (REST spec, section 3).

A filter is a tree: `{"filterGroup": {"kind": "group", "conjunction": "and", "children": [...]}}`, whose
leaves are `{"kind": "field", "columnName": "name", "operator": "contains", "value": "x"}`. Columns are fields
of the shown experiment, `hp.NAME` for hyperparameters, and some names of the page (`tags`, `user`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from det_contracts.problems import invalid

Shown = dict[str, Any]
Check = Callable[[Shown], bool]
_OTHER_NAMES = {
    "tags": "labels",
    "user": "username",
    "forkedFrom": "forkedFrom",
    "searcherMetricsVal": "bestTrialSearcherMetric",
}
DEEPEST = 8


def check_of(text: str) -> Check:
    """What an experiment must be like; raises `Refused` (400)."""
    if not text:
        return lambda _: True
    try:
        tree = json.loads(text)
    except ValueError as error:
        raise invalid(f"filter: this is no JSON: {error}") from None
    if not isinstance(tree, dict):
        raise invalid("filter: a JSON object is expected")
    shows_archived = tree.get("showArchived", True)
    inner = _node(tree.get("filterGroup", {"kind": "group", "children": []}), DEEPEST)
    return lambda one: (shows_archived or not one["archived"]) and inner(one)


def _node(node: Any, deep: int) -> Check:
    if not isinstance(node, dict) or deep < 0:
        raise invalid(f"filter: an object with the key kind is expected, at most {DEEPEST} deep")
    if node.get("kind") == "field":
        return _field(node)
    children = [_node(child, deep - 1) for child in node.get("children") or []]
    if not children:
        return lambda _: True
    whole = {"and": all, "or": any}.get(str(node.get("conjunction", "and")))
    if whole is None:
        raise invalid(f"filter: conjunction must be and or or, not {node.get('conjunction')!r}")
    return lambda one: whole(child(one) for child in children)


def _field(node: dict[str, Any]) -> Check:
    name, wanted = str(node.get("columnName", "")), node.get("value")
    operator = str(node.get("operator", "="))
    compare = OPERATORS.get(operator)
    if compare is None:
        raise invalid(f"filter: operator must be one of {', '.join(OPERATORS)}, not {operator!r}")
    return lambda one: compare(value_of(one, name), wanted)


def value_of(one: Shown, column: str) -> Any:
    """What an experiment has in a column; None where it has none."""
    if column.startswith("hp."):
        found: Any = one["config"].get("hyperparameters") or {}
        for part in column.split(".")[1:]:
            found = found.get(part) if isinstance(found, dict) else None
        return found.get("val", found) if isinstance(found, dict) else found
    value = one.get(_OTHER_NAMES.get(column, column))
    if column == "state" and isinstance(value, str):
        return value.removeprefix("STATE_")
    return value


def _contains(value: Any, wanted: Any) -> bool:
    if isinstance(value, list):
        return wanted in value
    return value is not None and str(wanted).lower() in str(value).lower()


def _equal(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, str) and isinstance(value, str):
        return value.lower() == wanted.removeprefix("STATE_").lower()
    return bool(value == wanted)


def _ordered(holds: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compare(value: Any, wanted: Any) -> bool:
        if isinstance(value, str) and isinstance(wanted, int | float):
            value = float(value) if value.replace(".", "", 1).isdigit() else None
        try:
            return value is not None and wanted is not None and holds(value, wanted)
        except TypeError:
            return False

    return compare


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": _equal,
    "!=": lambda value, wanted: not _equal(value, wanted),
    "contains": _contains,
    "notContains": lambda value, wanted: not _contains(value, wanted),
    "isEmpty": lambda value, _: value in (None, "", []),
    "notEmpty": lambda value, _: value not in (None, "", []),
    ">": _ordered(lambda a, b: a > b),
    ">=": _ordered(lambda a, b: a >= b),
    "<": _ordered(lambda a, b: a < b),
    "<=": _ordered(lambda a, b: a <= b),
}


def sorted_by(found: list[Shown], text: str) -> list[Shown]:
    """By `column=asc,column=desc`, the first one counts most; what lacks a value comes last."""
    found = sorted(found, key=lambda one: int(one["id"]), reverse=not text)
    for part in reversed([part for part in text.split(",") if part]):
        column, _, direction = part.partition("=")
        if direction not in ("", "asc", "desc"):
            raise invalid(f"sort: write COLUMN=asc or COLUMN=desc, not '{part}'")
        there = [one for one in found if value_of(one, column) is not None]
        there.sort(key=lambda one: _rank(value_of(one, column)), reverse=direction == "desc")
        found = there + [one for one in found if value_of(one, column) is None]
    return found


def _rank(value: Any) -> tuple[int, float, str]:
    """Numbers before texts, texts whatever their case."""
    if isinstance(value, int | float):
        return (0, float(value), "")
    return (1, 0.0, str(value).casefold())
