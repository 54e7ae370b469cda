"""Writes one copy of the database: what has changed since the copy before, and a manifest that names all."""

from __future__ import annotations

import threading
from typing import NamedTuple

import sqlalchemy as sa

from services.kit.migrate import schema_of
from services.kit.snapshot import furthest_positions
from services.metrics.copies.pages import pages_of
from services.metrics.copies.store import CopyStore, Manifest, PageEntry


class Interrupted(Exception):
    """Nobody waits for the copy any more."""


class Written(NamedTuple):
    """A copy whose objects are all stored."""

    key: str
    manifest: Manifest
    added: int
    """Bytes of the pages that were not there."""


def write_copy(
    connection: sa.Connection,
    store: CopyStore,
    owner: str,
    base: tuple[str, Manifest | None],
    there: set[str],
    stop: threading.Event,
    at: float,
) -> Written | None:
    """Store the database as of the moment that `connection` shows; None if nothing was ever saved in it.

    `base` is the newest announced copy with its manifest, whose pages are used again if they are among the
    objects that are `there`. Raises `Interrupted` once `stop` is set.
    """
    positions = furthest_positions(connection)
    if not positions:
        return None
    before, previous = base
    reusable = {page.digest: page for page in (previous.pages if previous else ()) if page.key in there}
    schema = schema_of(connection)
    pages: list[PageEntry] = []
    added = 0
    for page in pages_of(connection, schema):
        if stop.is_set():
            raise Interrupted
        entry = reusable.get(page.digest)
        if entry is None:
            key, size = store.put_page(page.load(), before)
            entry = PageEntry(page.digest, key, size)
            added += size
        pages.append(entry)
    manifest = Manifest(owner=owner, schema=schema, before=before, at=at, positions=positions, pages=pages)
    # Last: if it exists, everything that it names exists.
    return Written(store.put_manifest(manifest), manifest, added)
