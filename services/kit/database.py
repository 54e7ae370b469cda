"""One service's database: its snapshot, its read model, and the position both are true at.

All writing happens in one thread, in batches, each a single transaction. Everything in here can be
rebuilt from the log, so deleting a database costs a replay and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa

from services.kit.log import Mark
from services.kit.rules import Key, record_types
from services.kit.sqlite_files import is_damage, note_damage, sqlite_file

T = TypeVar("T")
METADATA = sa.MetaData()

POSITIONS = sa.Table(
    "positions",
    METADATA,
    sa.Column("owner", sa.String, primary_key=True),
    sa.Column("stream", sa.String, primary_key=True),
    sa.Column("position", sa.BigInteger, nullable=False),
)
SNAPSHOTS = sa.Table(
    "snapshots",
    METADATA,
    sa.Column("owner", sa.String, primary_key=True),
    sa.Column("kind", sa.String, primary_key=True),
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
MARKS = "log marks"
"""The kind of snapshot rows that are no records: what the log is known by."""
SIZE_IN_POSTGRESQL = sa.text(
    "select sum(pg_total_relation_size(c.oid)) from pg_class c join pg_namespace n on n.oid = c.relnamespace "
    "where n.nspname = current_schema() and c.relkind = 'r'"
)


class Unreadable(Exception):
    """A stored record is no record any more: bytes of it have changed on the disk."""


class Damaged(Exception):
    """The file of a database is broken; the next start sets it aside."""


class Database:
    """A SQLAlchemy engine with one writer thread and a few reader threads."""

    def __init__(self, url: str, *, readers: int = 4, damaged: str = "") -> None:
        """`damaged` says what was wrong with the file in whose place this one was made; it is empty then."""
        self.damaged = damaged
        self._file = sqlite_file(url)
        self._broken: asyncio.Future[str] | None = None
        sqlite = url.startswith("sqlite")
        options: dict[str, Any] = {"pool_size": readers + 1} if not sqlite or ":memory:" not in url else {}
        if sqlite:
            options["connect_args"] = {"check_same_thread": False, "timeout": 30}
        self.engine = sa.create_engine(url, **options)
        if sqlite:
            sa.event.listen(self.engine, "connect", _tune_sqlite)
        self._writer = ThreadPoolExecutor(1, "database-writer")
        self._readers = ThreadPoolExecutor(readers, "database-reader")
        self.failure = ""
        """Why it did not do what was asked last, where that was no fault of who asked; empty when it did."""

    async def until_damaged(self) -> None:
        """Raise `Damaged` once somebody meets damage in the file, wherever that is.

        Its users cannot go on, and a start of the process makes another from the log.
        """
        self._broken = asyncio.get_running_loop().create_future()
        raise Damaged(f"the database {self._file} is damaged: {await self._broken}")

    async def write(self, work: Callable[[sa.Connection], T]) -> T:
        """Run `work` in one transaction in the writer thread."""
        return await self._run(self._writer, self._transact, work)

    async def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Run `work` on a consistent view in a reader thread."""
        return await self._run(self._readers, self.look, work)

    async def _run(
        self,
        pool: ThreadPoolExecutor,
        way: Callable[[Callable[[sa.Connection], T]], T],
        work: Callable[[sa.Connection], T],
    ) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, way, work)
        except (sa.exc.DBAPIError, Unreadable) as error:
            if self._file is not None and (isinstance(error, Unreadable) or is_damage(error)):
                self._note_damage(self._file, str(getattr(error, "orig", error)))
            raise

    def _note_damage(self, file: Path, reason: str) -> None:
        note_damage(file, reason)
        if self._broken is not None and not self._broken.done():
            self._broken.set_result(reason)

    def look(self, work: Callable[[sa.Connection], T]) -> T:
        """Run `work` on a view of the database that no commit changes meanwhile."""
        with self._noting_failure(), self.engine.connect() as connection:
            if connection.dialect.name == "sqlite":
                # The driver begins a transaction by itself only before it writes.
                connection.exec_driver_sql("BEGIN")
            else:
                connection.execution_options(isolation_level="REPEATABLE READ")
            return work(connection)

    def _transact(self, work: Callable[[sa.Connection], T]) -> T:
        with self._noting_failure(), self.engine.begin() as connection:
            return work(connection)

    @contextlib.contextmanager
    def _noting_failure(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.OperationalError as error:
            self.failure = in_words(error)
            raise
        self.failure = ""

    async def size_bytes(self) -> int:
        """What it takes on disk, indices included."""
        return await self.read(_size_bytes)

    def close(self) -> None:
        """Let running work end, then give the connections back."""
        self._writer.shutdown()
        self._readers.shutdown()
        self.engine.dispose()


def in_words(error: sa.exc.DBAPIError) -> str:
    """What the database itself said, in one line and without the statement."""
    return str(error.orig).strip().partition("\n")[0]


def _size_bytes(connection: sa.Connection) -> int:
    if connection.dialect.name == "sqlite":
        pages = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("page_count", "page_size")
        ]
        return int(pages[0] or 0) * int(pages[1] or 0)
    return int(connection.execute(SIZE_IN_POSTGRESQL).scalar() or 0)


def _tune_sqlite(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    # A power loss may cost the newest transactions; the position goes with them, so replay restores both.
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.close()


def upsert(connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]]) -> None:
    """Insert rows or replace those with the same primary key; SQLite and PostgreSQL."""
    if not rows:
        return
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as sqlite_insert

        insert: Any = sqlite_insert(table)
    else:
        from sqlalchemy.dialects.postgresql import insert as postgresql_insert

        insert = postgresql_insert(table)
    keys = [column.name for column in table.primary_key]
    changed = {name: insert.excluded[name] for name in rows[0] if name not in keys}
    if changed:
        statement = insert.on_conflict_do_update(index_elements=keys, set_=changed)
    else:
        statement = insert.on_conflict_do_nothing(index_elements=keys)
    connection.execute(statement, rows)


def forget_snapshot(connection: sa.Connection, *tables: str) -> None:
    """For migrations: forget what follows from CONTROL alone; it is folded again at the start."""
    for name in (*tables, SNAPSHOTS.name, POSITIONS.name):
        connection.execute(sa.delete(sa.table(name)))


class Snapshot:
    """The stored form of one owner's folded state."""

    def __init__(self, owner: str, state: type[Any]) -> None:
        self.owner = owner
        self._state = state
        self._types = record_types(state)

    def load(self, connection: sa.Connection) -> tuple[Any, dict[str, int]]:
        """The state and the position of each stream that it is true at; empty when nothing was stored."""
        tables: dict[str, dict[Any, Any]] = {kind: {} for kind in self._types}
        decoders: dict[str, msgspec.json.Decoder[Any]] = {
            kind: msgspec.json.Decoder(record) for kind, (_, record) in self._types.items()
        }
        query = sa.select(SNAPSHOTS.c.kind, SNAPSHOTS.c.id, SNAPSHOTS.c.body).where(
            SNAPSHOTS.c.owner == self.owner, SNAPSHOTS.c.kind != MARKS
        )
        for kind, key, body in connection.execute(query):
            try:
                tables[kind][self._types[kind][0](key)] = decoders[kind].decode(body)
            except msgspec.ValidationError:
                # Sound, and of another version: that is for a person to look at.
                raise
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise Unreadable(f"the record of {kind} '{key}' cannot be read: {error}") from error
        return self._state(**tables), self.positions(connection)

    def save(
        self,
        connection: sa.Connection,
        records: Mapping[Key, Any],
        positions: Mapping[str, int],
        marks: Mapping[str, Mark] | None = None,
    ) -> bool:
        """Store what changed together with the positions, and with what the log is known by.

        Returns False, storing nothing, when another replica has already stored a later state.
        """
        stored = self.positions(connection, hold=True)
        if any(stored.get(stream, 0) > position for stream, position in positions.items()):
            return False
        rows = [
            {"owner": self.owner, "kind": kind, "id": str(key), "body": msgspec.json.encode(record)}
            for (kind, key), record in records.items()
            if record is not None
        ]
        rows += [
            {"owner": self.owner, "kind": MARKS, "id": stream, "body": msgspec.json.encode(mark)}
            for stream, mark in (marks or {}).items()
        ]
        upsert(connection, SNAPSHOTS, rows)
        self._drop(connection, (key for key, record in records.items() if record is None))
        upsert(
            connection,
            POSITIONS,
            [{"owner": self.owner, "stream": s, "position": p} for s, p in positions.items()],
        )
        return True

    def positions(self, connection: sa.Connection, *, hold: bool = False) -> dict[str, int]:
        """How far of each stream is stored; `hold` lets no other replica store before this one has."""
        query = sa.select(POSITIONS.c.stream, POSITIONS.c.position).where(POSITIONS.c.owner == self.owner)
        query = query.with_for_update() if hold else query
        return {stream: position for stream, position in connection.execute(query)}

    def marks(self, connection: sa.Connection) -> dict[str, Mark]:
        """By stream, a message that was read before the snapshot was stored."""
        query = sa.select(SNAPSHOTS.c.id, SNAPSHOTS.c.body).where(
            SNAPSHOTS.c.owner == self.owner, SNAPSHOTS.c.kind == MARKS
        )
        return {stream: msgspec.json.decode(body, type=Mark) for stream, body in connection.execute(query)}

    def _drop(self, connection: sa.Connection, keys: Iterable[Key]) -> None:
        for kind, key in keys:
            connection.execute(
                sa.delete(SNAPSHOTS).where(
                    SNAPSHOTS.c.owner == self.owner, SNAPSHOTS.c.kind == kind, SNAPSHOTS.c.id == str(key)
                )
            )
