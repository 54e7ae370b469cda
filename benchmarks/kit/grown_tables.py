"""The database of a service after very many cycles, from what it holds after three of them.

To fold twenty million events takes five services an hour, and every cycle leaves the same rows behind but
for ids and times, which grow by the same amount each time. So the rows of the third cycle are written again
with larger numbers, and numbers that count over all cycles are carried on. A test compares what comes
of it with what folding the same cycles leaves behind. SQLite alone.
"""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from services.catalogue import usage_days
from services.catalogue.domain import Allocation
from services.catalogue.runs import NOT_ENDED
from services.kit.snapshot import KINDS_WITHOUT_RECORDS

Row = tuple[Any, ...]
Rows = dict[Row, Row]
"""By primary key."""
_NUMBER = re.compile(r"\d+")
AS_THEY_ARE = {"alembic_version", "positions"}
"""Tables that say where a service is, not what it knows."""
SUMS = {"usage_days"}
"""Tables of sums over the rows of others, by day: several cycles are in one row. They are added up again."""
BACKWARDS = {("audit", "position")}
"""What lies at positions of the log: those behind are still to come."""
KEPT = {("snapshots", "position")}
"""When it was saved: now."""
AWAY = "snapshots", "away"


class Diverged(Exception):
    """What two cycles left behind differs by more than numbers that grow."""


class Table:
    """One table, as it was after the second cycle and after the third."""

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self.name = name
        table_info = connection.execute(f"PRAGMA table_info({name})").fetchall()
        self.columns = [str(column[1]) for column in table_info]
        self._key = [place for place, column in enumerate(table_info) if column[5]]
        self._connection = connection

    def rows(self) -> Rows:
        """All there are."""
        cursor = self._connection.execute(f"SELECT * FROM {self.name}")
        return {tuple(row[place] for place in self._key): row for row in cursor}

    def write(self, rows: Iterable[Row]) -> None:
        """Put rows in."""
        signs = ", ".join("?" * len(self.columns))
        self._connection.executemany(f"INSERT OR REPLACE INTO {self.name} VALUES ({signs})", rows)


Reading = dict[str, Rows]


def read(file: Path) -> Reading:
    """What a database holds, by table."""
    with sqlite3.connect(file) as connection:
        reading = {table.name: table.rows() for table in _tables(connection)}
    connection.close()
    return reading


def _tables(connection: sqlite3.Connection) -> list[Table]:
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return [Table(connection, name) for (name,) in names if name not in AS_THEY_ARE]


def grow(file: Path, first: Reading, second: Reading, cycles: int) -> None:
    """Let so many more cycles have been lived by the service whose database this is; it must not run.

    `first` and `second` are what it held after one cycle and after two, `file` what it holds after three.
    Raises `Diverged`.
    """
    connection = sqlite3.connect(file, isolation_level=None)
    connection.executescript("PRAGMA synchronous=OFF; PRAGMA cache_size=-400000; PRAGMA temp_store=MEMORY;")
    indexes = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    ).fetchall()
    connection.execute("BEGIN")
    for name, _ in indexes:
        connection.execute(f"DROP INDEX {name}")
    tables = {table.name: table for table in _tables(connection)}
    for table in (table for name, table in tables.items() if name not in SUMS):
        _grow_table(table, first.get(table.name, {}), second.get(table.name, {}), cycles)
    if "usage_days" in tables:
        tables["usage_days"].write(_usage_by_day(connection))
    for _, sql in indexes:
        connection.execute(sql)
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def _usage_by_day(connection: sqlite3.Connection) -> Iterator[Row]:
    """The slot time of all runs that have ended."""
    sums: dict[Row, int] = defaultdict(int)
    ended = connection.execute("SELECT body FROM runs WHERE until < ?", (NOT_ENDED,))
    for run in (msgspec.json.decode(body, type=Allocation) for (body,) in ended):
        for key, slot_us in usage_days.by_day(run, run.ended_at or 0.0):
            sums[key] += slot_us
    yield from ((*key, slot_us) for key, slot_us in sums.items())


def _grow_table(table: Table, first: Rows, second: Rows, cycles: int) -> None:
    third = table.rows()
    last = _came(third, second)
    before = _came(second, first)
    if len(last) != len(before):
        counted = f"{table.name}: {len(before)} rows came with one cycle, {len(last)} with the next"
        raise Diverged(f"{counted}: {before[:3]}, {last[:3]}, ..., {before[-3:]}, {last[-3:]}")
    growing_rows = [
        _GrowingRow(table, third[earlier], third[later])
        for earlier, later in zip(before, last, strict=True)
        if earlier in third
    ]
    table.write(
        row
        for number in range(1, cycles + 1)
        for growing_row in growing_rows
        for row in growing_row.after(number)
    )
    counting = [
        (second[key], third[key])
        for key in first
        if key in third and second.get(key) != third[key] and not _is_no_record(key)
    ]
    table.write(
        row for earlier, later in counting for row in _GrowingRow(table, earlier, later).after(cycles)
    )


def _came(now: Rows, before: Rows) -> list[Row]:
    return sorted((key for key in now if key not in before and not _is_no_record(key)), key=_in_order)


def _is_no_record(key: Row) -> bool:
    """Whether it says where a service is, or what it has seen of the log."""
    return any(kind in key for kind in KINDS_WITHOUT_RECORDS)


def _in_order(key: Row) -> list[Any]:
    """By the numbers in it, whatever their lengths."""
    return [
        (int(part), "") if part.isdecimal() else (0, part)
        for value in key
        for part in re.split(r"(\d+)", str(value))
    ]


class _GrowingRow:
    """A row, and how it differs from the one in its place a cycle before."""

    def __init__(self, table: Table, earlier: Row, later: Row) -> None:
        self._parts: list[tuple[Any, list[tuple[int | float, int | float]]]] = []
        for column, was, now in zip(table.columns, earlier, later, strict=True):
            place = table.name, column
            if place == AWAY:
                # What has ended and is saved leaves the memory; a start leaves it where it is.
                self._parts.append((int(later[table.columns.index("root")] is not None), []))
            elif place in KEPT:
                self._parts.append((now, []))
            else:
                self._parts.append(_growing(place, was, now))

    def after(self, cycles: int) -> Iterator[Row]:
        """The row that so many cycles later stands in its place."""
        yield tuple(
            form
            if not steps
            else steps[0][0] + cycles * steps[0][1]
            if form is None
            else form % tuple(base + cycles * step for base, step in steps)
            for form, steps in self._parts
        )


def _growing(place: tuple[str, str], was: Any, now: Any) -> tuple[Any, list[tuple[int | float, int | float]]]:
    """A form with the numbers that go into it, each with what it grows by."""
    if was == now or was is None or now is None:
        return now, []
    if isinstance(now, int | float):
        step = now - was
        return None, [(now, -step if place in BACKWARDS else step)]
    try:
        text, old = (value if isinstance(value, str) else value.decode() for value in (now, was))
    except UnicodeDecodeError:
        # Points of a curve, as they lie in a chunk: like those of the cycle before.
        return now, []
    parts, olds = _NUMBER.split(text), _NUMBER.split(old)
    if parts != olds:
        raise Diverged(f"{place[0]}.{place[1]}: {old[:300]} became {text[:300]}")
    form, steps = parts[0].replace("%", "%%"), list[tuple[int | float, int | float]]()
    numbers = zip(_NUMBER.findall(old), _NUMBER.findall(text), parts[1:], strict=True)
    for before, after, rest in numbers:
        if before == after:
            form += after
        else:
            form += "%d"
            steps.append((int(after), int(after) - int(before)))
        form += rest.replace("%", "%%")
    return (form if isinstance(now, str) else form.encode()), steps


def differences(readings: Sequence[Reading]) -> list[str]:
    """Where two databases differ, in lines for people; which records lie away is left out of it."""
    first, second = readings
    lines = []
    for name in sorted(first.keys() | second.keys()):
        mine, theirs = first.get(name, {}), second.get(name, {})
        lines += [f"{name}: {key} is in one of them alone" for key in mine.keys() ^ theirs.keys()]
        lines += [
            f"{name}: {mine[key]} and {theirs[key]}"
            for key in mine.keys() & theirs.keys()
            if _lasting(name, mine[key]) != _lasting(name, theirs[key])
        ]
    return lines


def _lasting(table: str, row: Row) -> Row:
    # Owner, kind, id, body and root: not whether it lies away, nor when it was saved.
    return row[:5] if table == "snapshots" else row
