"""Fills an empty database from the newest copy, before anything of the log is read."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import structlog
from sqlalchemy.exc import OperationalError

from det_contracts.events.metrics import DatabaseCopied
from services.kit import conditions
from services.kit.database import POSITIONS, SNAPSHOTS, Database, database_message
from services.kit.jetstream_feed import READ_ERRORS
from services.kit.log import Log
from services.kit.migrate import MIGRATION_LOCK, recreate, schema_of, upgrade
from services.kit.service import Restoration
from services.metrics.copies.copier import newest_copy
from services.metrics.copies.pages import TABLES, Rows
from services.metrics.copies.store import BadCopy, CopyStore, Manifest, check_store, store_of
from services.metrics.settings import MetricsSettings

RETRY_S = 5.0
MIGRATIONS = Path(__file__).parent.parent / "migrations"
ADVICE = (
    "Put its objects back, and this continues by itself; or unset STEADFAST_METRICS_STORE to begin with what "
    "REPORTS and LOGS still hold"
)
log = structlog.get_logger()


async def restore_copy(restoration: Restoration) -> bool:
    """Fill an empty database from its newest copy, if there is one; returns whether that was done.

    Retries while the store or the database is away, or the copy is incomplete. Raises `BadSettings`.
    """
    settings = restoration.settings
    assert isinstance(settings, MetricsSettings)  # noqa: S101 - for the type checker
    check_store(settings)
    while True:
        try:
            if not await restoration.database.read(is_empty):
                return False
            newest = await newest_copy(restoration.journal, restoration.owner)
            if not newest.fact.copy:
                return False
            store = await store_of(settings, restoration.owner, restoration.journal)
            if store is None:
                _warn_unused(newest.fact)
                return False
            restoration.watch.set_starting(f"restoring the database from {store!r}")
            await _compare(restoration.journal, newest.fact)
            restored = await restore(restoration.database, store, newest.fact)
        except (OSError, BadCopy, OperationalError, *READ_ERRORS) as error:
            why = database_message(error) if isinstance(error, OperationalError) else str(error)
            what = {"": "its database is empty and cannot be restored from its copy"}
            log.error("restoring.failed", error=why, advice=ADVICE)
            restoration.watch.conditions.set_condition(conditions.COPY_FAILS, what, {"": f"{why}. {ADVICE}"})
            await asyncio.sleep(RETRY_S)
            continue
        restoration.watch.conditions.set_condition(conditions.COPY_FAILS, {})
        return restored


async def restore(database: Database, store: CopyStore, fact: DatabaseCopied) -> bool:
    """Write a copy into an empty database, in one transaction; returns false if another process was faster.

    Raises `BadCopy`, and OSError if the store fails.
    """

    def work(connection: sa.Connection) -> bool:
        lock(connection)
        if not is_empty(connection):
            return False
        manifest = store.manifest(fact.copy, fact.owner)
        load_copy(connection, store, manifest)
        return True

    restored = await database.write(work)
    if restored:
        log.info("database.restored", copy=fact.copy, bytes=fact.size, through=fact.through)
    return restored


def is_empty(connection: sa.Connection) -> bool:
    """Whether nothing was ever saved in a database."""
    return not any(connection.execute(sa.select(table).limit(1)).first() for table in (POSITIONS, SNAPSHOTS))


def lock(connection: sa.Connection) -> None:
    """Wait for other processes that fill or migrate the database."""
    if connection.dialect.name == "postgresql":
        connection.execute(MIGRATION_LOCK)
    else:
        # Takes SQLite's lock for writing before looking.
        connection.execute(sa.update(POSITIONS).values(position=POSITIONS.c.position).where(sa.false()))


def load_copy(connection: sa.Connection, store: CopyStore, manifest: Manifest) -> None:
    """Replace what a database holds by a copy. Raises `BadCopy`, and OSError if the store fails."""
    current = schema_of(connection)
    # What an earlier release stored is written into its tables, and migrated with them.
    is_older = manifest.schema < current
    if is_older:
        recreate(connection, MIGRATIONS, manifest.schema)
    else:
        for table in TABLES:
            connection.execute(sa.delete(table))
    columns = _columns(connection)
    for page in manifest.pages:
        for rows in store.page(page.key):
            _insert(connection, rows, columns.get(rows.table, set()))
    if is_older:
        upgrade(connection, MIGRATIONS)


def _columns(connection: sa.Connection) -> dict[str, set[str]]:
    inspector = sa.inspect(connection)
    return {
        table: {column["name"] for column in inspector.get_columns(table)}
        for table in inspector.get_table_names()
    }


def _insert(connection: sa.Connection, rows: Rows, columns: Iterable[str]) -> None:
    # A later release may have added tables and columns, which this one does not need.
    names = [name for name in rows.columns if name in columns]
    if not names or not rows.rows:
        return
    values: list[dict[str, Any]] = [dict(zip(rows.columns, row, strict=True)) for row in rows.rows]
    table = sa.table(rows.table, *map(sa.column, names))
    connection.execute(sa.insert(table), [{name: row[name] for name in names} for row in values])


def _warn_unused(fact: DatabaseCopied) -> None:
    advice = (
        "the database is empty, and the log says that it was copied: to continue from the copy, stop this "
        "process, set STEADFAST_METRICS_STORE, delete the database and start again"
    )
    log.warning("copy.not_used", copy=fact.copy, through=fact.through, advice=advice)


async def _compare(journal: Log, fact: DatabaseCopied) -> None:
    """Say what the streams dropped before it was copied. Raises `BadCopy`."""
    for stream, (first, position) in (await dropped_messages(journal, fact)).items():
        advice = f"{stream} begins at {first}, the copy ends at {position}: what is between them is lost"
        log.warning("copy.too_old", stream=stream, messages=first - 1 - position, advice=advice)


async def dropped_messages(journal: Log, fact: DatabaseCopied) -> dict[str, tuple[int, int]]:
    """The streams that dropped messages before a copy had them: where they begin, and where the copy ends.

    Raises `BadCopy` if a stream ends before the copy: it is not the one that was copied.
    """
    dropped = {}
    for stream, position in fact.through.items():
        first, last = await journal.bounds(stream)
        if last < position:
            raise BadCopy(f"{stream} ends at position {last}, but the copy was taken at {position}")
        if first - 1 > position:
            dropped[stream] = first, position
    return dropped
