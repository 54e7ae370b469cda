"""The definition of a column, and what is derived from a table of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import sqlalchemy as sa
from pydantic import WithJsonSchema

from services.catalogue.api_values import format_int64, format_time
from services.catalogue.display_state import STATES
from services.catalogue.domain import State

R = TypeVar("R")
LARGEST = 2**63 - 1
"""Largest value that a table can store. Scripts may report any size."""
Instant = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
Long = Annotated[str, WithJsonSchema({"type": "string", "format": "int64"})]
ShownState = Annotated[
    str, WithJsonSchema({"type": "string", "enum": [f"STATE_{state}" for state in STATES]})
]


class Type(NamedTuple):
    """The type of a column's values."""

    api_type: str
    """The type for clients of 0.25."""
    display: str
    """How pages show the value."""
    json: Any
    """The type of a value in JSON."""
    to_json: Callable[[Any], Any] = lambda value: value
    """Converts a value to JSON. None is always shown as null."""


TEXT = Type("TEXT", "text", str)
INTEGER = Type("NUMBER", "number", int)
REAL = Type("NUMBER", "number", float)
FRACTION = Type("NUMBER", "share", float)
BYTES = Type("NUMBER", "bytes", Long, format_int64)
SECONDS = Type("NUMBER", "duration", int, int)
DATE = Type("DATE", "date", Instant, format_time)
FLAG = Type("BOOLEAN", "flag", bool)
TAGS = Type("TEXT", "tags", list[str], list)
STATE = Type("TEXT", "state", ShownState, lambda value: f"STATE_{value}")


@dataclass(frozen=True)
class StoredColumn(Generic[R]):
    """How a column is stored in the table behind a list."""

    name: str
    type: type[sa.types.TypeEngine[Any]]
    of: Callable[[R], Any] | None = None
    """The stored value, if it differs from the column's."""
    index: bool = False
    key: bool = False


@dataclass(frozen=True)
class Column(Generic[R]):
    """One column of a list of records."""

    name: str
    """The name in filters, sort orders and lists of columns."""
    title: str
    """The name for people."""
    type: Type
    of: Callable[[R], Any] = lambda _: None
    """The column's value."""
    of_state: Callable[[State, R], Any] | None = None
    """The column's value, if it depends on other records."""
    json: str | None = ""
    """The JSON key, if it differs from the name. None: not part of the record's JSON."""
    optional: bool = False
    """Whether the value may be missing."""
    sort: str = ""
    """The name of the sort order in 0.25, without `SORT_BY_`."""
    stored: tuple[StoredColumn[R], ...] = ()
    """The columns in the table behind lists. Sorting uses the last one."""
    changes_with_time: bool = False
    """Whether the value changes with time until the record has ended."""
    listed: bool = True
    """Whether it is in the list of columns. Clients of 0.25 do not know the others."""

    def value(self, state: State, record: R) -> Any:
        """The column's value for a record."""
        return self.of(record) if self.of_state is None else self.of_state(state, record)

    @property
    def key(self) -> str | None:
        """The column's key in JSON."""
        return self.name if self.json == "" else self.json


Columns = Mapping[str, Column[Any]]


def columns_by_name(columns: Iterable[Column[R]]) -> dict[str, Column[R]]:
    """Columns by name."""
    return {column.name: column for column in columns}


def table_columns(columns: Columns) -> list[sa.Column[Any]]:
    """The columns of the table behind a list."""
    return [
        sa.Column(
            stored.name,
            stored.type,
            primary_key=stored.key,
            nullable=column.optional and not stored.key,
            index=stored.index or None,
        )
        for column in columns.values()
        for stored in column.stored
    ]


def row(columns: Columns, record: Any) -> dict[str, Any]:
    """A record as a row of its table."""
    return {
        stored.name: (stored.of or column.of)(record)
        for column in columns.values()
        for stored in column.stored
    }


def sort_columns(columns: Columns, table: sa.Table) -> dict[str, sa.ColumnElement[Any]]:
    """The columns by which a list can be sorted, by their names in 0.25."""
    return {
        column.sort: table.c[column.stored[-1].name]
        for column in columns.values()
        if column.sort and column.stored
    }


def columns_json(columns: Columns, state: State, record: Any) -> dict[str, Any]:
    """The part of a record's JSON that comes from its columns."""
    fields: dict[str, Any] = {}
    for column in columns.values():
        if (key := column.key) is not None:
            value = column.value(state, record)
            fields[key] = None if value is None else column.type.to_json(value)
    return fields


def json_types(columns: Columns) -> dict[str, Any]:
    """The JSON type of each key from the columns."""
    return {
        column.key: column.type.json | None if column.optional else column.type.json
        for column in columns.values()
        if column.key is not None
    }
