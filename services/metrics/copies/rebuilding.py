"""Fills the database again from its newest copy, when an administrator asks for a rebuild (decision 100)."""

from __future__ import annotations

from functools import partial

import sqlalchemy as sa
import structlog

from services.kit import conditions
from services.kit.database import database_message
from services.kit.service import Restoration
from services.kit.snapshot import Snapshot
from services.metrics.copies.copier import newest_copy
from services.metrics.copies.restoring import dropped_messages, load_copy, lock, restore_copy
from services.metrics.copies.store import BadCopy, CopyStore, store_of
from services.metrics.settings import MetricsSettings

log = structlog.get_logger()


async def restore_or_rebuild(restoration: Restoration) -> bool:
    """Fill a database that is empty, or is to be rebuilt, from its newest copy; returns whether it did.

    Raises `BadSettings`.
    """
    restored = await restore_copy(restoration)
    request = await restoration.database.read(restoration.snapshot.rebuild_rows.due)
    if not request:
        return restored
    if restored:
        # It holds the newest copy already.
        await _mark(restoration, request)
        return True
    return await _rebuild(restoration, request)


async def _rebuild(restoration: Restoration, request: int) -> bool:
    try:
        work = await _filling(restoration, request)
        rebuilt = await restoration.database.write(work)
    except (OSError, BadCopy, sa.exc.SQLAlchemyError) as error:
        why = database_message(error) if isinstance(error, sa.exc.OperationalError) else str(error)
        # Refused once and for all: a rebuild that begins by itself, weeks later, is not what was asked for.
        await _mark(restoration, request)
        log.warning("rebuild.refused", request=request, error=why, advice="the database is as it was")
        refused = {"": "its database was not rebuilt, and is as it was"}
        restoration.watch.conditions.set_condition(conditions.REBUILD_REFUSED, refused, {"": why})
        return False
    if rebuilt:
        log.info("database.rebuilt", request=request)
    return rebuilt


async def _mark(restoration: Restoration, request: int) -> None:
    await restoration.database.write(partial(restoration.snapshot.rebuild_rows.mark_served, request=request))


async def _filling(restoration: Restoration, request: int) -> partial[bool]:
    """The transaction that replaces the database. Raises `BadCopy`, and OSError if the store fails."""
    settings, journal = restoration.settings, restoration.journal
    assert isinstance(settings, MetricsSettings)  # noqa: S101 - for the type checker
    store = await store_of(settings, restoration.owner, journal)
    if store is None:
        raise BadCopy("STEADFAST_METRICS_STORE is not set, so it has no copy to be rebuilt from")
    newest = await newest_copy(journal, restoration.owner)
    if not newest.fact.copy:
        raise BadCopy("no copy of it has been made yet: wait until database.copied is in its output")
    for stream, (first, position) in (await dropped_messages(journal, newest.fact)).items():
        raise BadCopy(
            f"{stream} begins at {first} and the newest copy ends at {position}: what is between them is in "
            "this database alone and would be lost. Wait for the next copy"
        )
    restoration.watch.set_starting(f"rebuilding the database from {store!r}")
    return partial(_fill_again, restoration.snapshot, store, newest.fact.copy, request)


def _fill_again(
    snapshot: Snapshot, store: CopyStore, copy: str, request: int, connection: sa.Connection
) -> bool:
    """Replace everything by a copy; returns false if another process was faster.

    In one transaction, which also reads the copy: a damaged one, or a kill, leaves the database as it was.
    """
    lock(connection)
    # Other replicas wait here before they save, and then find that the database is another one.
    snapshot.positions(connection, for_update=True)
    if snapshot.rebuild_rows.served(connection) >= request:
        return False
    manifest = store.manifest(copy, snapshot.owner)
    load_copy(connection, store, manifest)
    # The copy was made before this request, or holds what was known of an earlier one.
    snapshot.rebuild_rows.mark_served(connection, request)
    return True
