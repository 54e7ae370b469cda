"""Maps, lists and unions of the schema, composed of smaller parts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import msgspec

from det_contracts.expconf.faults import Faults, did_you_mean, format_value
from det_contracts.expconf.scalars import Node

Join = Callable[[list[Any], list[Any]], list[Any]]


class Field(msgspec.Struct, frozen=True):
    """One key of a record.

    `needed`: "finally" after merging, "now" whenever the record is given, "as key" even if null. A `default`
    of None leaves the field null.
    """

    node: Node
    default: Any = None
    needed: Literal["", "finally", "now", "as key"] = ""


class Rule(msgspec.Struct, frozen=True):
    """A check of several fields of a record. It is skipped if a field in `about` is already at fault.

    `check` receives the record, in which unset fields are absent or null, and its path.
    """

    about: tuple[str, ...]
    check: Callable[[dict[str, Any], str, Faults], None]


def rule(
    about: str, message: str, holds: Callable[[dict[str, Any]], bool], *, at: str = "", final: bool = False
) -> Rule:
    """Create a condition on the blank-separated fields in `about`. `at` is appended to the record's path.

    A `final` condition is checked only after merging.
    """

    def check(value: dict[str, Any], path: str, faults: Faults) -> None:
        if (faults.final or not final) and not holds(value):
            faults.add(path + at, message)

    return Rule(tuple(about.split()), check)


def replace(high: list[Any], low: list[Any]) -> list[Any]:
    """Use the more specific list instead of both."""
    return high


def low_first(high: list[Any], low: list[Any]) -> list[Any]:
    """Concatenate both lists with the more specific one last, for lists in which later entries win."""
    return [*low, *high]


def append_missing_by(key: str) -> Join:
    """Append to the more specific list those items of the other whose value of `key` is not in use yet."""

    def join(high: list[Any], low: list[Any]) -> list[Any]:
        taken = {item[key] for item in high}
        return [*high, *(item for item in low if item[key] not in taken)]

    return join


class ListOf(Node, frozen=True):
    """A list with items of the same kind."""

    item: Node
    join: Join = replace

    def read(self, value: Any, at: str, faults: Faults) -> Any:
        if not isinstance(value, list):
            faults.add(at, f"must be a list, not {format_value(value)}")
            return value
        return [self.item.read(item, f"{at}[{index}]", faults) for index, item in enumerate(value)]

    def merge(self, high: Any, low: Any) -> Any:
        return self.join(high, low)

    def fill(self, value: Any) -> Any:
        return [self.item.fill(item) for item in value]


class MapOf(Node, frozen=True):
    """A map with arbitrary keys and values of the same kind."""

    item: Node

    def read(self, value: Any, at: str, faults: Faults) -> Any:
        if not isinstance(value, dict):
            faults.add(at, f"must be a map, not {format_value(value)}")
            return value
        return {
            key: None if item is None else self.item.read(item, f"{at}.{key}", faults)
            for key, item in value.items()
        }

    def merge(self, high: Any, low: Any) -> Any:
        return merge_maps(high, low, lambda _: self.item)


class Record(Node, frozen=True):
    """A map with known fields. An `open` record keeps other keys unchanged."""

    fields: Mapping[str, Field]
    rules: tuple[Rule, ...] = ()
    open: bool = False

    def read(self, value: Any, at: str, faults: Faults) -> Any:
        if not isinstance(value, dict):
            faults.add(at, f"must be a map, not {format_value(value)}")
            return value
        read_fields = {key: self._field(key, value, at, faults) for key in self.fields if key in value}
        others = {key: item for key, item in value.items() if key not in self.fields}
        self._report_missing(value, at, faults)
        if not self.open:
            report_unknown(others, self.fields, at, faults)
        for each in self.rules:
            # A rule may compare what it is given: a field with a fault could be of any type.
            if all(faults.is_clean(f"{at}.{name}") for name in each.about):
                each.check(read_fields, at, faults)
        return read_fields | others

    def merge(self, high: Any, low: Any) -> Any:
        return merge_maps(high, low, lambda key: self.fields[key].node if key in self.fields else Node())

    def fill(self, value: Any) -> Any:
        filled = {key: _fill_field(field, value.get(key)) for key, field in self.fields.items()}
        return filled | {key: item for key, item in value.items() if key not in self.fields}

    def _field(self, key: str, value: dict[str, Any], at: str, faults: Faults) -> Any:
        item = value[key]
        return None if item is None else self.fields[key].node.read(item, f"{at}.{key}", faults)

    def _report_missing(self, value: dict[str, Any], at: str, faults: Faults) -> None:
        for key, field in self.fields.items():
            due = field.needed == "now" or (field.needed == "finally" and faults.final)
            if (due and value.get(key) is None) or (field.needed == "as key" and key not in value):
                faults.add(f"{at}.{key}", "is required and not set")


class Union(Node, frozen=True):
    """A map whose other fields depend on the word under `key`, which a partial configuration may omit."""

    key: str
    shared: Mapping[str, Field]
    branches: Mapping[str, Record]
    message: str

    @property
    def current_branches(self) -> dict[str, Record]:
        """The branches allowed in new experiments. Removed ones have no fields and accept anything."""
        return {word: branch for word, branch in self.branches.items() if branch.fields}

    def read(self, value: Any, at: str, faults: Faults) -> Any:
        if not isinstance(value, dict):
            faults.add(at, self.message)
            return value
        word = value.get(self.key)
        if word is None:
            return self._read_without_key(value, at, faults)
        if not isinstance(word, str) or word not in self.branches:
            nearest = did_you_mean(word, self.current_branches)
            faults.add(at, f"{self.message}; it is {format_value(word)}{nearest}")
            return value
        return self._branch(word).read(value, at, faults)

    def merge(self, high: Any, low: Any) -> Any:
        word, other = high.get(self.key), low.get(self.key)
        # The less specific side may have chosen another branch, such as another search method, whose fields
        # mean nothing here.
        if word is not None and other != word:
            fields = self.shared if other is not None else self._branch(word).fields
            low = {key: item for key, item in low.items() if key in fields}
        chosen = word or other
        return (self._branch(chosen) if chosen else Record(self.shared)).merge(high, low)

    def fill(self, value: Any) -> Any:
        word = value.get(self.key)
        return (self._branch(word) if word else Record(self.shared)).fill(value)

    def _branch(self, word: str) -> Record:
        branch = self.branches[word]
        fields = {self.key: Field(Node()), **branch.fields, **self.shared}
        return msgspec.structs.replace(branch, fields=fields)

    def _read_without_key(self, value: dict[str, Any], at: str, faults: Faults) -> Any:
        """Read a map without the word. Fields of any branch are allowed, and are checked once it is known."""
        if faults.final:
            faults.add(f"{at}.{self.key}", "is required and not set")
        names = {self.key, *self.shared, *(key for branch in self.branches.values() for key in branch.fields)}
        report_unknown({key: item for key, item in value.items() if key not in names}, names, at, faults)
        later = {key: item for key, item in value.items() if key not in self.shared}
        now = {key: item for key, item in value.items() if key in self.shared}
        return Record(self.shared).read(now, at, faults) | later


def merge_maps(high: dict[str, Any], low: dict[str, Any], node_of: Callable[[str], Node]) -> dict[str, Any]:
    """Merge two maps key by key. Keys that are unset in `high` come from `low`."""
    result = dict(low)
    for key, item in high.items():
        if item is not None:
            other = low.get(key)
            result[key] = item if other is None else node_of(key).merge(item, other)
        else:
            # A null stays as a null, because some fields must be given even if null.
            result.setdefault(key, None)
    return result


def report_unknown(others: Mapping[str, Any], names: Iterable[str], at: str, faults: Faults) -> None:
    """Report every unknown key, with the nearest known name."""
    for key in others:
        faults.add(f"{at}.{key}", f"unknown field{did_you_mean(key, names)}")


def _fill_field(field: Field, value: Any) -> Any:
    if value is None:
        # The caller may change the completed configuration, and would change the schema.
        value = copy.deepcopy(field.default)
    return None if value is None else field.node.fill(value)
