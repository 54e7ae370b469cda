"""Divides the database into pages: runs of rows in the order of their keys, most of which stay as they are.

A page has a digest of what it holds, so that the next copy need not store it again. Where a page ends follows
from the rows themselves, so a new row changes one page and not all that come after it.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from services.kit.database import POSITIONS, SNAPSHOTS
from services.metrics.logs import tables as logs
from services.metrics.reports import tables as reports

SMALLEST, LARGEST = 512 * 1024, 8 * 1024 * 1024
"""Bytes of a page. One row may be larger."""
SPREAD = 16
"""One of so many rows may end a page that is large enough."""
VALUE_BYTES = 8
"""What a value other than text and bytes counts for."""
BY_CONTENT = (
    *(POSITIONS, SNAPSHOTS, reports.TRIALS, reports.HOMES, reports.SUMMARIES, reports.VALIDATIONS),
    *(reports.PARTITIONS, logs.TASKS),
)
"""Tables whose rows are read for each copy."""
TABLES = (*BY_CONTENT, logs.CHUNKS, reports.CHUNKS, reports.COLUMNS)
"""All tables."""
_encode = msgspec.msgpack.Encoder().encode
_cell_bytes = (str, bytes)


class Rows(msgspec.Struct, frozen=True, array_like=True):
    """Rows of one table."""

    table: str
    columns: list[str]
    rows: list[Sequence[Any]]


class Page(NamedTuple):
    """A page before it is stored."""

    digest: str
    """Identifies what it holds."""
    load: Callable[[], list[Rows]]
    """Reads the rows, unless they are at hand."""


def pages_of(connection: sa.Connection, schema: str) -> Iterator[Page]:
    """All pages of the database, as of one moment. `load` must be called before the next one is taken."""
    for table in BY_CONTENT:
        yield from _pages_by_content(connection, table, schema)
    yield from _pages_by_heads(
        connection,
        logs.CHUNKS,
        schema,
        lambda head: head["stored"],
        lambda first, last: [_between(connection, logs.CHUNKS, logs.CHUNKS.c.first_id, first, last)],
    )
    yield from _pages_by_heads(
        connection,
        reports.CHUNKS,
        schema,
        lambda head: head["reports"] * (head["names"] + 3) * VALUE_BYTES,
        lambda first, last: [
            _between(connection, reports.CHUNKS, reports.CHUNKS.c.id, first, last),
            _between(connection, reports.COLUMNS, reports.COLUMNS.c.chunk_id, first, last),
        ],
    )


def _pages_by_content(connection: sa.Connection, table: sa.Table, schema: str) -> Iterator[Page]:
    names = [str(column.name) for column in table.columns]
    key_count = len(table.primary_key.columns)
    query = sa.select(*table.columns).order_by(*table.primary_key.columns)
    # The columns of the primary key come first in every table.
    for rows in _divide(_stream(connection, query), lambda row: row[:key_count], _row_bytes):
        content = [Rows(str(table.name), names, rows)]
        yield Page(_digest(schema, content), lambda content=content: content)  # type: ignore[misc]


def _pages_by_heads(
    connection: sa.Connection,
    table: sa.Table,
    schema: str,
    weight: Callable[[dict[str, Any]], int],
    load: Callable[[int, int], list[Rows]],
) -> Iterator[Page]:
    """Pages of chunks.

    Chunks are what a database mostly consists of. Each is a function of the log and of its plain columns, so
    these tell whether it is the one that was copied before, and the others are read only if it is not.
    """
    columns = [column for column in table.columns if not isinstance(column.type, sa.LargeBinary)]
    names = [str(column.name) for column in columns]
    query = sa.select(*columns).order_by(*table.primary_key.columns)

    def size(head: Sequence[Any]) -> int:
        return weight(dict(zip(names, head, strict=True)))

    for heads in _divide(_stream(connection, query), lambda head: head[:1], size):
        yield Page(
            _digest(schema, [Rows(str(table.name), names, heads)]), partial(load, heads[0][0], heads[-1][0])
        )


def _stream(connection: sa.Connection, query: sa.Select[Any]) -> Iterator[list[Any]]:
    with connection.execute(query.execution_options(yield_per=500)) as result:
        for row in result:
            yield list(row)


def _between(connection: sa.Connection, table: sa.Table, key: Any, first: int, last: int) -> Rows:
    query = sa.select(*table.columns).where(key >= first, key <= last)
    rows = connection.execute(query.order_by(*table.primary_key.columns)).all()
    return Rows(str(table.name), [str(column.name) for column in table.columns], [list(row) for row in rows])


def _divide(
    rows: Iterable[list[Any]],
    key: Callable[[list[Any]], list[Any]],
    size: Callable[[list[Any]], int],
) -> Iterator[list[Any]]:
    page: list[Any] = []
    total = 0
    for row in rows:
        page.append(row)
        total += size(row)
        ends = total >= SMALLEST and zlib.crc32(_encode(key(row))) % SPREAD == 0
        if ends or total >= LARGEST:
            yield page
            page, total = [], 0
    if page:
        yield page


def _row_bytes(row: Iterable[Any]) -> int:
    return sum(len(value) if isinstance(value, _cell_bytes) else VALUE_BYTES for value in row)


def _digest(schema: str, content: list[Rows]) -> str:
    # With the schema: a migration may store the same in another form.
    return hashlib.sha256(_encode([schema, content])).hexdigest()
