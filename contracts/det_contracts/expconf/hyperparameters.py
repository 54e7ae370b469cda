"""The search space: constants, ranges, choices and groups of them (configuration spec, section 2.2)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from det_contracts.expconf.composites import Field, ListOf, Record, rule
from det_contracts.expconf.faults import Faults, did_you_mean, format_value
from det_contracts.expconf.scalars import Integer, Node, Number, Text

# Word for word as in 0.25, including its missing quote.
BAD_TYPE = (
    'if a hyperparameter object\'s ["type"] is set, it must be one of '
    '"int", "double", "log", const", or "categorical"'
)
NO_COUNT = "grid search is in use but count was not provided"
COUNTED_TYPES = ("int", "double", "log")

Path = tuple[str, ...]


def _is_finite(hp: dict[str, Any]) -> bool:
    base = float(hp.get("base", 1))
    try:
        spans = [float(hp["maxval"]) - hp["minval"], base ** hp["minval"], base ** hp["maxval"]]
    except (OverflowError, ZeroDivisionError):
        return False
    return all(map(math.isfinite, spans))


def _range(bound: Node, **more: Field) -> Record:
    bounds = {end: Field(bound, needed="now") for end in ("minval", "maxval")}
    return Record(
        {"type": Field(Text()), **more, **bounds, "count": Field(Integer(1))},
        (
            rule("minval maxval", "minval must be less than maxval", lambda hp: hp["minval"] < hp["maxval"]),
            rule(" ".join((*more, *bounds)), "the range goes beyond what a double can hold", _is_finite),
        ),
    )


SAMPLED = {
    "const": Record({"type": Field(Text()), "val": Field(Node(), needed="as key")}),
    "int": _range(Integer()),
    "double": _range(Number()),
    "log": _range(Number(), base=Field(Number(above=0), needed="now")),
    "categorical": Record(
        {"type": Field(Text()), "vals": Field(ListOf(Node()), needed="now")},
        (rule("vals", "must hold at least one value", lambda hp: bool(hp["vals"]), at=".vals"),),
    ),
}


class Group(Node, frozen=True):
    """A map of hyperparameters, nested to any depth. Two groups merge by name; anything else is replaced."""

    def read(self, value: Any, at: str, faults: Faults) -> Any:
        if not isinstance(value, dict):
            faults.add(at, f"must be a map, not {format_value(value)}")
            return value
        return {name: self._read_one(item, f"{at}.{name}", faults) for name, item in value.items()}

    def merge(self, high: Any, low: Any) -> Any:
        # A null is a constant here, not an unset field.
        both = {name for name in high if is_group(high[name]) and is_group(low.get(name))}
        return low | high | {name: self.merge(high[name], low[name]) for name in both}

    def fill(self, value: Any) -> Any:
        return {name: self._fill_one(item) for name, item in value.items()}

    def _read_one(self, value: Any, at: str, faults: Faults) -> Any:
        if is_group(value):
            return self.read(value, at, faults)
        if not isinstance(value, dict):
            return value
        kind = value["type"]
        if not isinstance(kind, str) or kind not in SAMPLED:
            faults.add(at, f"{BAD_TYPE}; it is {format_value(kind)}{did_you_mean(kind, SAMPLED)}")
            return value
        return SAMPLED[kind].read(value, at, faults)

    def _fill_one(self, value: Any) -> Any:
        if is_group(value):
            return self.fill(value)
        return SAMPLED[value["type"]].fill(value) if isinstance(value, dict) else value


def is_group(value: object) -> bool:
    """Whether this is a group of hyperparameters rather than a single one."""
    return isinstance(value, dict) and "type" not in value


def leaves(hyperparameters: dict[str, Any], above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every single hyperparameter with its path of names: in ascending order, depth first.

    Search methods draw in this order, and it is the order of a grid's axes (searchers spec, sections 2 and
    4). Also works on sampled values.
    """
    # Not in the order of the file: a configuration that passed through JSON or another client must give the
    # same search.
    for name in sorted(hyperparameters):
        value = hyperparameters[name]
        if is_group(value):
            yield from leaves(value, (*above, name))
        else:
            yield (*above, name), value


def flatten(hyperparameters: dict[str, Any]) -> dict[str, Any]:
    """Return the hyperparameters with dotted names, for display."""
    return {".".join(path): value for path, value in leaves(hyperparameters)}


def has_count(hyperparameter: object) -> bool:
    """Whether the number of grid points of this hyperparameter is known."""
    if isinstance(hyperparameter, dict) and hyperparameter.get("type") in COUNTED_TYPES:
        return hyperparameter.get("count") is not None
    return True


def report_uncounted(value: Any, at: str, faults: Faults) -> None:
    """Report every range without a count, at any depth including lists, because a grid cannot use it."""
    if not has_count(value):
        faults.add(at, NO_COUNT)
    if isinstance(value, list):
        for index, item in enumerate(value):
            report_uncounted(item, f"{at}[{index}]", faults)
    elif is_group(value):
        for name, item in value.items():
            report_uncounted(item, f"{at}.{name}", faults)


HYPERPARAMETERS = Group()
