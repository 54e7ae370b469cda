"""A world whose tables are copied to a folder, and the ways in which a process ends while it copies."""

import sqlalchemy as sa

from det_contracts import subjects
from services.kit.blobs import DirectoryBlobs
from services.kit.log_memory import MemoryLog
from services.metrics.copies.copier import Copier, newest_copy
from services.metrics.copies.restoring import restore
from services.metrics.copies.store import CopyStore

OWNER = "metrics"


class Killed(BaseException):
    """The process was killed here."""


class Store(DirectoryBlobs):
    """A folder that counts what is stored in it, and of which every call may be the last of its process."""

    def __init__(self, root, countdown=None):
        super().__init__(root)
        self.countdown = countdown
        self.puts = []

    def _tick(self):
        if self.countdown is not None:
            self.countdown -= 1
            if self.countdown < 0:
                raise Killed

    def put(self, key, file):
        self._tick()
        super().put(key, file)
        self.puts.append(key)
        self._tick()

    def keys(self):
        self._tick()
        return super().keys()

    def delete(self, key):
        self._tick()
        super().delete(key)
        self._tick()

    def open(self, key, offset=0):
        self._tick()
        return super().open(key, offset)


class DyingLog:
    """A log of which every append may be the last call of its process, before or after it is stored."""

    def __init__(self, log, store):
        self._log = log
        self._store = store

    async def append_batch(self, drafts, *, fence):
        self._store._tick()
        position = await self._log.append_batch(drafts, fence=fence)
        self._store._tick()
        return position

    def __getattr__(self, name):
        return getattr(self._log, name)


class Place:
    """A world, its database, and where its copies lie."""

    def __init__(self, world, tables, folder):
        self.world = world
        self.tables = tables
        self.folder = folder
        self.log = MemoryLog()
        # Announcements are appended to the same CONTROL that is folded.
        self.log.streams = world.streams
        self.now = 0.0

    def copier(self, countdown=None, interval_s=0.0, keep_s=0.0):
        """The copier of a process that has just begun; also its store."""
        store = Store(self.folder, countdown)
        stream = DyingLog(self.log, store)
        copier = Copier(
            OWNER,
            self.tables.database,
            self.log,
            stream,
            CopyStore(store),
            interval_s=interval_s,
            keep_s=keep_s,
            clock=lambda: self.now,
        )
        return copier, store

    async def copy(self, countdown=None):
        """Make a copy, unless it is killed on the way; returns the store."""
        copier, store = self.copier(countdown)
        await copier.copy_if_due(self.world.at)
        return store

    async def restore(self):
        """Lose the database, and continue from the newest copy; returns whether there was one."""
        self.tables.drop()
        newest = await newest_copy(self.log, OWNER)
        has_copy = bool(newest.fact.copy)
        if has_copy:
            assert await restore(self.tables.database, CopyStore(DirectoryBlobs(self.folder)), newest.fact)
        self.world.state, stored = self.tables.state()
        self.world.at = dict.fromkeys(self.world.streams, 0) | stored
        self.world.unsaved, self.world.dirty = [], set()
        for stream in (subjects.REPORTS, subjects.LOGS):
            assert self.world.at[stream] >= self.log.removed_through[stream]
        return has_copy

    def rows(self):
        """All rows of all tables."""
        return rows_of(self.tables.database)

    def objects(self):
        """The names of all objects."""
        return DirectoryBlobs(self.folder).keys()


def rows_of(database):
    """All rows of all tables of a database."""
    with database.engine.begin() as connection:
        names = sa.inspect(connection).get_table_names()
        results = {name: connection.execute(sa.text(f"SELECT * FROM {name}")) for name in names}
        return {name: sorted(map(tuple, result), key=repr) for name, result in results.items()}
