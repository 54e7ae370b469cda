"""One service's database: its snapshot, its read model, and the log position of both.

All writes happen in one thread, in batches, each a single transaction. Everything here can be rebuilt from
the log, so deleting a database costs only a replay.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from time import monotonic, sleep
from typing import Any, TypeVar

import sqlalchemy as sa

from services.kit.sqlite_files import is_damage, mark_damaged, sqlite_file

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
    sa.Column("root", sa.String),
    sa.Column("away", sa.SmallInteger, nullable=False, server_default="0"),
    sa.Column("position", sa.BigInteger, nullable=False, server_default="0"),
)
"""For owners that page by root, `root` is the root a record belongs to, `away` is 1 if a start does not load
it, and `position` says when it was saved: the sum of the positions to which all streams were folded."""
CONTENT_ERRORS = (
    sa.exc.DataError,
    sa.exc.IntegrityError,
    sa.exc.NotSupportedError,
    sa.exc.ProgrammingError,
)
"""What a database answers if it is all right, but not what it is told to write."""
IS_LOADED = sa.text("away = 0")
"""Shared literally by the index and the queries; otherwise the database does not recognise the condition."""
ROOT_INDEX = sa.Index("snapshots_of_root", SNAPSHOTS.c.owner, SNAPSHOTS.c.root)
LOADED_INDEX = sa.Index(
    "snapshots_loaded", SNAPSHOTS.c.owner, sqlite_where=IS_LOADED, postgresql_where=IS_LOADED
)
IDS_PER_QUERY = 500
"""Number of ids in one database query."""
SQLITE_CACHE_KIB = 256
"""Size of the page cache of each connection to SQLite, of which a service has five; SQLite's own is 2 MB."""
LOCK_PATIENCE_S, LOCK_PAUSE_S = 30.0, 0.01
"""How long in seconds to wait for other users of an SQLite file, and how long between two attempts where
SQLite itself does not wait."""
SIZE_IN_POSTGRESQL = sa.text(
    "select sum(pg_total_relation_size(c.oid)) from pg_class c join pg_namespace n on n.oid = c.relnamespace "
    "where n.nspname = current_schema() and c.relkind = 'r'"
)


class UnreadableRecord(Exception):
    """A stored record that cannot be decoded because its bytes changed on disk."""


class DatabaseDamaged(Exception):
    """The database file is damaged. The next start sets it aside."""


class Database:
    """A SQLAlchemy engine with one writer thread and a few reader threads."""

    def __init__(self, url: str, *, readers: int = 4, damaged: str = "") -> None:
        """`damaged` says what was wrong with the file that this new, empty database replaces."""
        self.damaged = damaged
        self._file = sqlite_file(url)
        self._damage_found: asyncio.Future[str] | None = None
        sqlite = url.startswith("sqlite")
        # One connection for each thread, so that none waits for another.
        options: dict[str, Any] = {"pool_size": readers + 1} if not sqlite or ":memory:" not in url else {}
        if sqlite:
            options["connect_args"] = {"check_same_thread": False, "timeout": LOCK_PATIENCE_S}
        self.engine = sa.create_engine(url, **options)
        sa.event.listen(self.engine, "connect", _tune_sqlite if sqlite else _tune_postgresql)
        # One thread, because saves must be stored in the order in which they were made.
        self._writer = ThreadPoolExecutor(1, "database-writer")
        self._readers = ThreadPoolExecutor(readers, "database-reader")
        self.failure = ""
        """Why the last operation failed through no fault of the caller; empty if it succeeded."""

    async def raise_when_damaged(self) -> None:
        """Raise `DatabaseDamaged` once any caller finds damage in the file.

        The service cannot go on. The next start of the process rebuilds the database from the log.
        """
        self._damage_found = asyncio.get_running_loop().create_future()
        raise DatabaseDamaged(f"the database {self._file} is damaged: {await self._damage_found}")

    async def write(self, work: Callable[[sa.Connection], T]) -> T:
        """Run `work` in one transaction in the writer thread."""
        return await self._run(self._writer, self._transact, work)

    async def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Run `work` on a consistent view in a reader thread."""
        return await self._run(self._readers, self.read_sync, work)

    async def _run(
        self,
        pool: ThreadPoolExecutor,
        run: Callable[[Callable[[sa.Connection], T]], T],
        work: Callable[[sa.Connection], T],
    ) -> T:
        with self._recording_damage():
            return await asyncio.get_running_loop().run_in_executor(pool, run, work)

    def read_blocking(self, work: Callable[[sa.Connection], T]) -> T:
        """Run `work` on a consistent view, blocking the event loop. For the few rows that a rule looks up."""
        with self._recording_damage():
            return self.read_sync(work)

    @contextlib.contextmanager
    def _recording_damage(self) -> Iterator[None]:
        try:
            yield
        except (sa.exc.DBAPIError, UnreadableRecord) as error:
            if self._file is not None and (isinstance(error, UnreadableRecord) or is_damage(error)):
                self._record_damage(self._file, str(getattr(error, "orig", error)))
            raise

    def _record_damage(self, file: Path, reason: str) -> None:
        mark_damaged(file, reason)
        # Damage found before anybody waits for it is known by the note beside the file, which the next
        # start reads.
        if self._damage_found is not None and not self._damage_found.done():
            self._damage_found.set_result(reason)

    def read_sync(self, work: Callable[[sa.Connection], T]) -> T:
        """Run `work` on a view of the database that no concurrent commit changes."""
        with self._recording_failure(), self.engine.connect() as connection:
            if connection.dialect.name == "sqlite":
                # The driver begins a transaction on its own only before a write.
                connection.exec_driver_sql("BEGIN")
            else:
                connection.execution_options(isolation_level="REPEATABLE READ")
            return work(connection)

    def _transact(self, work: Callable[[sa.Connection], T]) -> T:
        with self._recording_failure(), self.engine.begin() as connection:
            return work(connection)

    @contextlib.contextmanager
    def _recording_failure(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.OperationalError as error:
            self.failure = database_message(error)
            raise
        self.failure = ""

    async def size_bytes(self) -> int:
        """Return the size on disk in bytes, indices included."""
        return await self.read(_size_bytes)

    def close(self) -> None:
        """Let running work finish, then release the connections."""
        self._writer.shutdown()
        self._readers.shutdown()
        self.engine.dispose()


def database_message(error: sa.exc.DBAPIError) -> str:
    """Return the database's own error message, on one line and without the statement."""
    return str(error.orig).strip().partition("\n")[0]


def error_text(error: Exception) -> str:
    """Return what went wrong with a transaction, on one line and without the statement."""
    return database_message(error) if isinstance(error, sa.exc.DBAPIError) else repr(error)


def is_about_content(error: Exception) -> bool:
    """Whether a transaction failed because of what it was to write, and would fail again."""
    if isinstance(error, sa.exc.DBAPIError):
        return isinstance(error, CONTENT_ERRORS) and not is_damage(error)
    if isinstance(error, sa.exc.StatementError):
        return True
    return not isinstance(error, sa.exc.SQLAlchemyError | UnreadableRecord | OSError | MemoryError)


def _size_bytes(connection: sa.Connection) -> int:
    if connection.dialect.name == "sqlite":
        pages = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("page_count", "page_size")
        ]
        return int(pages[0] or 0) * int(pages[1] or 0)
    return int(connection.execute(SIZE_IN_POSTGRESQL).scalar() or 0)


def _tune_sqlite(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    _write_ahead(cursor)
    # A power loss may lose the newest transactions, but the position goes with them, so a replay restores
    # both.
    cursor.execute("PRAGMA synchronous=NORMAL")
    # Each of a service's connections has a cache of its own, of pages that the kernel holds already.
    cursor.execute(f"PRAGMA cache_size=-{SQLITE_CACHE_KIB}")
    cursor.close()


def _write_ahead(cursor: Any) -> None:
    """Have the file written with a write-ahead log."""
    give_up_at = monotonic() + LOCK_PATIENCE_S
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            # SQLite reads first, and does not make a reader wait that comes to write, since two of them would
            # wait for each other. Several processes that are the first to open a file come to that.
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or monotonic() > give_up_at:
                raise
        sleep(LOCK_PAUSE_S)


def _tune_postgresql(connection: Any, _: Any) -> None:
    from psycopg.types.string import StrDumper

    class WithoutNul(StrDumper):
        """Replaces NUL characters.

        User texts may contain them and are already in the log, so saving must not fail.
        """

        def dump(self, obj: str) -> Any:
            return super().dump(replace_nul(obj))

    connection.adapters.register_dumper(str, WithoutNul)


def replace_nul(text: str) -> str:
    """Return the text with NUL, which PostgreSQL cannot store, replaced by a visible sign."""
    return text.replace("\0", "\u2400") if "\0" in text else text


def id_batches(ids: Iterable[T]) -> Iterator[list[T]]:
    """Split ids into batches, each for one query."""
    left = iter(ids)
    return iter(lambda: list(islice(left, IDS_PER_QUERY)), [])


def upsert(connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]]) -> None:
    """Insert rows, or replace those with the same primary key. Works on SQLite and PostgreSQL."""
    if not rows:
        return
    connection.execute(_upsertion(connection.dialect.name, table, tuple(rows[0])), rows)


@functools.cache
def _upsertion(dialect: str, table: sa.Table, names: tuple[str, ...]) -> Any:
    """Built once, as are the statements below: to build one takes several times as long as to run it."""
    insert = _insert(dialect, table)
    keys = [column.name for column in table.primary_key]
    changed = {name: insert.excluded[name] for name in names if name not in keys}
    if not changed:
        return insert.on_conflict_do_nothing(index_elements=keys)
    return insert.on_conflict_do_update(index_elements=keys, set_=changed)


def delete_matching(connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]]) -> None:
    """Delete rows. Each is given as the columns that it is known by, the same for all of them."""
    if not rows:
        return
    values = [{f"of_{name}": value for name, value in row.items()} for row in rows]
    connection.execute(_deletion(table, tuple(rows[0])), values)


@functools.cache
def _deletion(table: sa.Table, names: tuple[str, ...]) -> sa.Delete:
    return sa.delete(table).where(*(table.c[name] == sa.bindparam(f"of_{name}") for name in names))


def add_to_sums(connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]]) -> None:
    """Insert rows, or add their numbers to those of rows with the same primary key."""
    if not rows:
        return
    connection.execute(_addition(connection.dialect.name, table), rows)


@functools.cache
def _addition(dialect: str, table: sa.Table) -> Any:
    insert = _insert(dialect, table)
    sums = [column for column in table.columns if not column.primary_key]
    added = {column.name: column + insert.excluded[column.name] for column in sums}
    keys = [column.name for column in table.primary_key]
    return insert.on_conflict_do_update(index_elements=keys, set_=added)


def _insert(dialect: str, table: sa.Table) -> Any:
    """An insertion into a table that can say what happens to rows that are there."""
    if dialect == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as sqlite_insert

        return sqlite_insert(table)
    from sqlalchemy.dialects.postgresql import insert as postgresql_insert

    return postgresql_insert(table)


def add_roots(connection: sa.Connection) -> None:
    """For migrations: add roots to records, unless the tables were created with them."""
    columns = {column["name"] for column in sa.inspect(connection).get_columns(SNAPSHOTS.name)}
    if SNAPSHOTS.c.root.name not in columns:
        connection.exec_driver_sql("ALTER TABLE snapshots ADD COLUMN root VARCHAR")
        connection.exec_driver_sql("ALTER TABLE snapshots ADD COLUMN away SMALLINT NOT NULL DEFAULT 0")
        connection.exec_driver_sql("ALTER TABLE snapshots ADD COLUMN position BIGINT NOT NULL DEFAULT 0")
        ROOT_INDEX.create(connection)
        LOADED_INDEX.create(connection)


def forget_snapshot(connection: sa.Connection, *tables: str) -> None:
    """For migrations: delete what follows from CONTROL alone. The next start folds it again."""
    for name in (*tables, SNAPSHOTS.name, POSITIONS.name):
        connection.execute(sa.delete(sa.table(name)))
