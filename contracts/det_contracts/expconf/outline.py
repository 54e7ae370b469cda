"""Lists the fields of the configuration with their types and defaults, for editors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from det_contracts.expconf.composites import Field, ListOf, MapOf, Record, Union
from det_contracts.expconf.experiment import EXPERIMENT
from det_contracts.expconf.hyperparameters import SAMPLED, Group
from det_contracts.expconf.length import LengthNode
from det_contracts.expconf.scalars import (
    Boolean,
    Choice,
    Ignored,
    Integer,
    MultiForm,
    Node,
    NullOnly,
    Number,
    Text,
)

LEVELS = 8
"""Maximum path depth. Hyperparameters can be nested indefinitely."""
KINDS: dict[type[Node], str] = {
    Text: "text",
    Boolean: "true or false",
    Integer: "whole number",
    Number: "number",
    Choice: "word",
    LengthNode: "length",
    Record: "map",
    Union: "map",
    MapOf: "map",
    Group: "map",
    ListOf: "list",
}


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A field of the configuration."""

    path: str
    """Dotted path, with `*` for a user-chosen name and `[]` for a list item."""
    kind: str
    default: Any = None
    required: bool = False
    words: tuple[str, ...] = ()
    """The allowed values, if they are known."""
    only: tuple[str, ...] = ()
    """The field exists only if the word that selects the branch of its map is one of these."""


def outline() -> list[Known]:
    """Return every field in schema order. A field in several branches of a map is listed once."""
    described: dict[str, Known] = {}
    for field in _fields_below(EXPERIMENT, "", ()):
        former = described.get(field.path)
        # If branches have different defaults, none is given.
        if former is not None:
            only = (*former.only, *(word for word in field.only if word not in former.only))
            default = former.default if former.default == field.default else None
            field = msgspec.structs.replace(former, only=only, default=default)
        described[field.path] = field
    return list(described.values())


def _fields_below(node: Node, at: str, only: tuple[str, ...]) -> Iterator[Known]:
    if at.count(".") >= LEVELS:
        return
    if isinstance(node, MultiForm):
        yield from _fields_below(node.inner, at, only)
    elif isinstance(node, Record):
        yield from _fields(node, at, only)
    elif isinstance(node, Union):
        yield _field(node.key, Field(Choice(tuple(node.current_branches)), needed="finally"), at, only)
        yield from _fields(Record(node.shared), at, only)
        for word, branch in node.current_branches.items():
            yield from _fields(branch, at, (word,))
    elif isinstance(node, Group):
        yield _field("type", Field(Choice(tuple(SAMPLED))), f"{at}.*", only)
        for word, branch in SAMPLED.items():
            yield from _fields(
                Record({n: f for n, f in branch.fields.items() if n != "type"}), f"{at}.*", (word,)
            )
    elif isinstance(node, ListOf):
        yield from _fields_below(node.item, f"{at}[]", only)
    elif isinstance(node, MapOf):
        yield from _fields_below(node.item, f"{at}.*", only)


def _fields(record: Record, at: str, only: tuple[str, ...]) -> Iterator[Known]:
    for name, field in record.fields.items():
        if not isinstance(field.node, Ignored | NullOnly):
            yield _field(name, field, at, only)
            yield from _fields_below(field.node, f"{at}.{name}" if at else name, only)


def _field(name: str, field: Field, at: str, only: tuple[str, ...]) -> Known:
    node = field.node.inner if isinstance(field.node, MultiForm) else field.node
    return Known(
        path=f"{at}.{name}" if at else name,
        kind=KINDS.get(type(node), "anything"),
        default=field.default,
        required=field.needed in ("finally", "now"),
        words=node.words if isinstance(node, Choice) else (),
        only=only,
    )
