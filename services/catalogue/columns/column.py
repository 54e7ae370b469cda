"""What a column is, and what is made of a table of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import sqlalchemy as sa
from pydantic import WithJsonSchema

from services.catalogue.api_values import instant, long
from services.catalogue.display_state import STATES
from services.catalogue.domain import State

R = TypeVar("R")
LARGEST = 2**63 - 1
"""What a table takes: sizes are what scripts say they are."""
Instant = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
Long = Annotated[str, WithJsonSchema({"type": "string", "format": "int64"})]
ShownState = Annotated[str, WithJsonSchema({"type": "string", "enum": [f"STATE_{one}" for one in STATES]})]


class Type(NamedTuple):
    """What values of a column are."""

    word: str
    """As clients of 0.25 are told."""
    look: str
    """As pages show it."""
    json: Any
    """Type of a value in JSON."""
    shown: Callable[[Any], Any] = lambda value: value
    """A value as JSON; None is shown as null without it."""


TEXT = Type("TEXT", "text", str)
WHOLE = Type("NUMBER", "number", int)
REAL = Type("NUMBER", "number", float)
SHARE = Type("NUMBER", "share", float)
BYTES = Type("NUMBER", "bytes", Long, long)
SECONDS = Type("NUMBER", "duration", int, int)
DATE = Type("DATE", "date", Instant, instant)
FLAG = Type("BOOLEAN", "flag", bool)
TAGS = Type("TEXT", "tags", list[str], list)
STATE = Type("TEXT", "state", ShownState, lambda value: f"STATE_{value}")


@dataclass(frozen=True)
class Kept(Generic[R]):
    """How a column lies in the table that lists are read from."""

    name: str
    type: type[sa.types.TypeEngine[Any]]
    of: Callable[[R], Any] | None = None
    """Where the table holds something else than the column."""
    index: bool = False
    key: bool = False


@dataclass(frozen=True)
class Column(Generic[R]):
    """One column of a list of records."""

    name: str
    """As filters, orders and lists of columns call it."""
    title: str
    """For people."""
    type: Type
    of: Callable[[R], Any] = lambda _: None
    """Its value."""
    within: Callable[[State, R], Any] | None = None
    """Its value, where other records tell it."""
    json: str | None = ""
    """Its key in JSON, where that is another than its name; None: it is not part of the record there."""
    optional: bool = False
    """Whether there may be no value."""
    sort: str = ""
    """What 0.25 calls the order by it, without `SORT_BY_`."""
    kept: tuple[Kept[R], ...] = ()
    """In the table of lists; ordered by the last of these."""
    moves: bool = False
    """Whether it changes by itself as time goes by, until the record has ended."""
    told: bool = True
    """Whether it is in the list of columns; clients of 0.25 do not know of the others."""

    def value(self, state: State, record: R) -> Any:
        """The value of one record."""
        return self.of(record) if self.within is None else self.within(state, record)

    @property
    def key(self) -> str | None:
        """Its key in JSON."""
        return self.name if self.json == "" else self.json


Columns = Mapping[str, Column[Any]]


def table_of(columns: Iterable[Column[R]]) -> dict[str, Column[R]]:
    """Columns by name."""
    return {column.name: column for column in columns}


def tables_columns(columns: Columns) -> list[sa.Column[Any]]:
    """The columns of the table that a list is read from."""
    return [
        sa.Column(
            kept.name,
            kept.type,
            primary_key=kept.key,
            nullable=column.optional and not kept.key,
            index=kept.index or None,
        )
        for column in columns.values()
        for kept in column.kept
    ]


def row(columns: Columns, record: Any) -> dict[str, Any]:
    """A record as its table holds it."""
    return {kept.name: (kept.of or column.of)(record) for column in columns.values() for kept in column.kept}


def sorts(columns: Columns, table: sa.Table) -> dict[str, sa.ColumnElement[Any]]:
    """What a list can be ordered by in its table, by the name that 0.25 has for it."""
    return {
        column.sort: table.c[column.kept[-1].name]
        for column in columns.values()
        if column.sort and column.kept
    }


def shown(columns: Columns, state: State, record: Any) -> dict[str, Any]:
    """The part of a record's JSON that is made of its columns."""
    found: dict[str, Any] = {}
    for column in columns.values():
        if (key := column.key) is not None:
            value = column.value(state, record)
            found[key] = None if value is None else column.type.shown(value)
    return found


def json_types(columns: Columns) -> dict[str, Any]:
    """The type of each key of that."""
    return {
        column.key: column.type.json | None if column.optional else column.type.json
        for column in columns.values()
        if column.key is not None
    }
