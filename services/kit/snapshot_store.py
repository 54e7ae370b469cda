"""Commits what the fold changed: snapshot delta, read model and position in one transaction.

Saving runs behind the fold. Whatever a crash loses is folded again from the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
import structlog

from det_contracts import subjects
from det_contracts.envelope import Recorded
from det_contracts.problems import unavailable
from services.kit.awaitable_position import AwaitablePosition
from services.kit.database import Database, UnreadableRecord, database_message, error_text, is_about_content
from services.kit.log import Mark
from services.kit.narrowing import PortionFailed
from services.kit.process import StartAgain
from services.kit.process_metrics import Measures
from services.kit.rebuild_requests import RebuildRequests
from services.kit.roots import Roots
from services.kit.rules import Key
from services.kit.saved_portions import SavedPortions
from services.kit.saver import Projection
from services.kit.snapshot import Pages, Snapshot
from services.kit.unsaved import BACKLOG_LIMIT, Unsaved, UnsavedRecord

SAVE_EVERY_S = 1.0
"""How long changes may wait to be saved together, unless a reader asks for them or there are many."""
FOLLOWER_POLL_S = 0.1
"""How long a replica that does not write waits between checks of what the writing one has saved."""
MAX_PAUSE_S = 5.0
FAILED_PAUSE_S = 1.0
"""Pause in seconds before saving is retried after a database failure."""

log = structlog.get_logger()


class DatabaseSaver:
    """Saves to a database, batch after batch, while this replica leads."""

    def __init__(
        self,
        database: Database,
        owner: str,
        state: type[Any],
        *,
        fold_version: int = 1,
        projection: Projection | None = None,
        projected: frozenset[type] | None = None,
        clear_projection: Callable[[sa.Connection], None] | None = None,
        rebuilt_at_start: bool = False,
        is_leader: Callable[[], bool] = lambda: True,
        backlog_limit: int = BACKLOG_LIMIT,
        measures: Measures | None = None,
        marks: Callable[[], Mapping[str, Mark]] = dict,
        roots: Roots[Any] | None = None,
    ) -> None:
        """Create a saver; `run` does the saving.

        `marks` returns, per stream, a message that identifies the log. For `fold_version` and `roots`, see
        `Rules`; for `projected`, `clear_projection` and `restore` (`rebuilt_at_start`), see `Service`.
        """
        self._measures, self._marks = measures or Measures(owner), marks
        self._snapshot = Snapshot(owner, state, fold_version)
        self._projection, self._projected = projection, projected
        self._clear_projection, self._rebuilt_at_start = clear_projection, rebuilt_at_start
        self._database, self._is_leader, self._backlog_limit = database, is_leader, backlog_limit
        self._has_deleted_old = self._overtaken = False
        self.rebuilds = RebuildRequests()
        self._ends = False
        """Whether what is in the database is no longer what was loaded from it."""
        self.roots = roots
        self._unsaved, self.portions = Unsaved(), SavedPortions()
        self._rootless_keys: list[Key] = []
        """Database records without the root they belong to, saved by a release that had no roots."""
        self._state: Any = None
        self.saved_positions: dict[str, int] = {}
        """Per stream, the position up to which everything is in the database."""
        self._has_unsaved, self._save_now, self._has_capacity = (asyncio.Event() for _ in range(3))
        self.folded_position = AwaitablePosition()
        """Position up to which CONTROL is folded, also while listeners are called."""
        self._waiting_readers = 0
        """Number of callers waiting for the folded state to be saved."""
        self._listeners: list[tuple[Callable[[Collection[Key]], None], Callable[[], None]]] = []

    def watch(self, on_changed: Callable[[Collection[Key]], None], on_reload: Callable[[], None]) -> None:
        """Call `on_changed` with the keys of each folded batch in log order, before they are saved.

        After a reload `on_reload` is called: records that neither state holds may have come and gone.
        """
        self._listeners.append((on_changed, on_reload))

    @property
    def unsaved_events(self) -> int:
        """Number of events waiting to be saved."""
        return len(self._unsaved.events)

    async def load(self) -> tuple[Any, dict[str, int]]:
        if self._clear_projection is not None:
            await self._database.write(self._reset_after_other_versions)
        state, positions, strays, rebuilt_for, due = await self._load_with_retry()
        if self.portions.folded and rebuilt_for != self.rebuilds.rebuilt_for:
            raise StartAgain("the database was emptied meanwhile")
        self.rebuilds.rebuilt_for, self._ends, self._overtaken = rebuilt_for, False, False
        self.rebuilds.request(due)
        self._state = state
        self.saved_positions = dict(positions)
        self._unsaved = Unsaved()
        self.portions.reload(positions)
        self.folded_position.begin(positions.get(subjects.CONTROL, 0))
        if self.portions.folded:
            for _, on_reload in self._listeners:
                on_reload()
        self._add_roots(strays)
        return state, positions

    def _add_roots(self, strays: list[Key]) -> None:
        """Save records again with their roots before any of those roots is evicted."""
        self._rootless_keys = strays
        # A record that is not loaded was saved by another replica since; the next start loads it.
        loaded = {key: record for key in strays if (record := dict.get(getattr(self._state, key[0]), key[1]))}
        if not loaded or self.roots is None:
            return
        portion = self.portions.add(dict(self.portions.positions))
        for key, record in loaded.items():
            root = self.roots.root_of(self._state, key)
            self._unsaved.records.setdefault(key, UnsavedRecord(record, root, portion))
        self._has_unsaved.set()

    def _load_rootless(self, connection: sa.Connection, state: Any) -> list[Key]:
        """Return the records without roots, after loading the rest of the roots they belong to."""
        if self.roots is None:
            return []
        roots = {
            key: self.roots.root_of(state, key)
            for key in self._snapshot.keys_without_root(connection, self.roots.root_lookups)
        }
        strays = [key for key, root in roots.items() if root is not None]
        whole = {root for root in roots.values() if root is not None}
        for records in self._snapshot.pages(connection, (), whole).records.values() if whole else ():
            away = [key for key in records if dict.get(getattr(state, key[0]), key[1]) is None]
            for table, id in away:
                getattr(state, table)[id] = records[table, id]
            self.roots.index(state, away)
        return strays

    async def _load_with_retry(self) -> tuple[Any, dict[str, int], list[Key], int, int]:
        def work(connection: sa.Connection) -> tuple[Any, dict[str, int], list[Key], int, int]:
            state, positions = self._snapshot.load(connection)
            strays = self._load_rootless(connection, state)
            rows = self._snapshot.rebuild_rows
            return state, positions, strays, rows.served(connection), rows.due(connection)

        while True:
            try:
                return await self._database.read(work)
            except sa.exc.OperationalError as error:
                if not self.portions.folded:
                    raise
                # A running service needs the database back before it can go on.
                log.warning("loading.failed", error=database_message(error))
                await asyncio.sleep(FAILED_PAUSE_S)

    def pages_blocking(
        self, keys: Collection[Key], roots: Collection[str], is_loaded: Callable[[str], bool]
    ) -> Pages:
        """Load the wanted records together with their roots (`Snapshot.pages`). Blocks the event loop."""
        pages = self._database.read_blocking(lambda c: self._snapshot.pages(c, keys, roots, is_loaded))
        return self._add_folded_save(pages)

    async def query(self, question: Callable[[Snapshot, sa.Connection], Pages]) -> Pages:
        """Ask for records in a thread, retrying until the database answers."""
        while True:
            try:
                return self._add_folded_save(await self._database.read(lambda c: question(self._snapshot, c)))
            except sa.exc.OperationalError as error:
                log.warning("loading.failed", error=database_message(error))
                await asyncio.sleep(FAILED_PAUSE_S)

    def _add_folded_save(self, pages: Pages) -> Pages:
        if self._ends or pages.rebuilt_for != self.rebuilds.rebuilt_for:
            # What is not there now may be there once the log is folded again.
            raise UnreadableRecord("the database is being rebuilt from the log")
        pages.folded_save = self.portions.newest_folded_save()
        return pages

    def is_saved(self, portion: int) -> bool:
        """Whether everything up to a portion is in the database with its root, whichever replica wrote it."""
        return not self._rootless_keys and self.portions.is_saved(portion)

    def record_eviction(self, root: str) -> None:
        """Note that a root has left memory. Everything in it is saved."""
        self._unsaved.evicted[root] = None

    def _reset_after_other_versions(self, connection: sa.Connection) -> None:
        # If there are several snapshots, the tables are those of whichever wrote last.
        if self._clear_projection is not None and self._snapshot.other_fold_versions(connection):
            self._snapshot.delete_all(connection)
            self._clear_projection(connection)

    async def _start_rebuild(self, request: int) -> None:
        """Delete everything, and end this process: it starts as with a lost database."""
        if self._rebuilt_at_start:
            raise StartAgain(f"the database is to be rebuilt, as event {request} of CONTROL asks for")

        def work(connection: sa.Connection) -> None:
            if self._snapshot.delete_all(connection, request) and self._clear_projection is not None:
                self._clear_projection(connection)

        # While this waits, nothing may be decided about records that it deletes.
        self._ends = True
        try:
            await self._database.write(work)
        except sa.exc.OperationalError:
            self._ends = False
            raise
        raise StartAgain(f"the database is rebuilt from the log, as event {request} of CONTROL asks for")

    async def changed(
        self,
        state: Any,
        keys: Collection[Key],
        events: Sequence[Recorded],
        positions: dict[str, int],
        size: int = 0,
    ) -> None:
        portion, roots, unsaved = self.portions.add(positions), self.roots, self._unsaved.records
        for key in keys:
            root = roots.root_of(state, key) if roots is not None else None
            # `dict.get` does not page in: a dropped record must not be loaded again.
            unsaved[key] = UnsavedRecord(dict.get(getattr(state, key[0]), key[1]), root, portion)
        if self._projection is not None:
            self._unsaved.add_events(events, portion, size, self._projected)
        self.folded_position.advance(positions.get(subjects.CONTROL, 0))
        self._has_unsaved.set()
        for on_changed, _ in self._listeners:
            on_changed(keys)
        if self._backlog_fill() <= 0.5:
            return
        # Long before whoever folds has to wait.
        self._save_now.set()
        while self._backlog_fill() > 1 and not self._overtaken:
            self._save_now.set()
            self._has_capacity.clear()
            await self._has_capacity.wait()

    def _backlog_fill(self) -> float:
        # Where roots come and go, what is not saved is what has to stay.
        return self._unsaved.share_of(self._backlog_limit, count_records=self.roots is not None)

    async def run(self) -> None:
        pause = SAVE_EVERY_S
        while True:
            await self._has_unsaved.wait()
            self.portions.lag.allowed_s = pause
            if not self._waiting_readers:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._save_now.wait()
            self._save_now.clear()
            self._has_unsaved.clear()
            began = time.monotonic()
            try:
                stored = self._is_leader() and await self._save()
                if stored and self.rebuilds.due:
                    # Not before the save, which whoever asked for it may wait for.
                    await self._start_rebuild(self.rebuilds.due)
            except sa.exc.OperationalError as error:
                # Nothing is lost, and a restart would find the database no better, so retry.
                log.warning("saving.failed", error=database_message(error))
                await asyncio.sleep(FAILED_PAUSE_S)
                self._has_unsaved.set()
                continue
            # Large records are rewritten whole, so the longer a save takes, the less often it runs.
            pause = min(max(SAVE_EVERY_S, 10 * (time.monotonic() - began)), MAX_PAUSE_S)
            if not stored:
                await self._discard_saved()
                self._has_unsaved.set()

    async def _discard_saved(self) -> None:
        """Drop what another replica has already written."""
        rebuilt_for = await self._database.read(self._snapshot.rebuilt_for)
        if rebuilt_for != self.rebuilds.rebuilt_for:
            self._ends = True
            raise StartAgain("another replica rebuilds the database from the log")
        stored, self._rootless_keys = await self._database.read(self._read_saved)
        self.portions.track_save(stored)
        self.portions.mark_covered(stored)
        self._unsaved.discard_saved(stored, self.portions.saved.position)
        if self.portions.are_all_saved:
            self.saved_positions = stored
        self._has_capacity.set()
        await asyncio.sleep(FOLLOWER_POLL_S)

    def _read_saved(self, connection: sa.Connection) -> tuple[dict[str, int], list[Key]]:
        """Return the positions another replica has saved, and the records it saved without roots."""
        stored = self._snapshot.positions(connection)
        if self.roots is None:
            return stored, []
        strays = self._snapshot.keys_without_root(connection, self.roots.root_lookups)
        return stored, [key for key in strays if self.roots.root_of(self._state, key) is not None]

    async def _save(self) -> bool:
        """Save what was folded. Returns false if another replica is ahead in any stream."""
        unsaved = self._unsaved.take()
        positions, folded = dict(self.portions.positions), self.portions.folded
        work = self._saving(unsaved, positions)
        began = time.perf_counter()
        stored = False
        try:
            stored = await self._database.write(work)
        except Exception as error:
            if not is_about_content(error):
                raise
            raise PortionFailed(f"it cannot be saved: {error_text(error)}") from error
        finally:
            if not stored:
                self._unsaved.put_back(unsaved)
        self._overtaken = not stored
        if self._overtaken:
            return False
        self._has_deleted_old = True
        self.portions.track_save(positions)
        if self._rootless_keys:
            # Any that remain were saved by the previous leader.
            self._add_roots((await self._database.read(self._read_saved))[1])
        self._measures.committed(time.perf_counter() - began)
        self.saved_positions = positions
        self.portions.mark_saved(folded)
        self._has_capacity.set()
        return True

    def _saving(self, unsaved: Unsaved, positions: dict[str, int]) -> Callable[[sa.Connection], bool]:
        """Return the transaction that saves all this, or returns false if another replica is ahead."""
        records, roots = unsaved.record_values(), unsaved.record_roots()
        paged = self.roots.root_lookups if self.roots is not None else {}
        dropped = any(record is None and key[0] in paged for key, record in records.items())
        request = self.rebuilds.due
        changes = (records, positions, dict(self._marks()), roots, unsaved.evicted)

        def work(connection: sa.Connection) -> bool:
            stored = self._snapshot.positions(connection, for_update=True)
            if self._snapshot.rebuilt_for(connection) != self.rebuilds.rebuilt_for:
                return False
            if not self._snapshot.save(connection, *changes, dropped=dropped, stored=stored):
                return False
            self._snapshot.rebuild_rows.mark_due(connection, request)
            if not self._has_deleted_old:
                self._snapshot.delete_older(connection)
            if self._projection is not None:
                # Events folded while another replica led are in the tables already.
                new = [e for e in unsaved.events if e.position > stored.get(e.stream, 0)]
                self._projection(connection, records, new)
            return True

        return work

    def saved_position(self, connection: sa.Connection) -> int:
        """Return the CONTROL position that tables and snapshot reflect, whichever replica wrote them."""
        return self._snapshot.positions(connection).get(subjects.CONTROL, 0)

    async def wait_for_position(self, position: int = 0, within_s: float = 30.0) -> None:
        """Wait until the read model shows everything folded by now, and CONTROL up to `position`.

        Raises `Refused` (unavailable) after `within_s` seconds.
        """
        try:
            async with asyncio.timeout(within_s):
                loads = -1
                while loads != self.portions.loads:  # Once more after each reload.
                    loads = self.portions.loads
                    await self.folded_position.wait_for_position(position)
                    await self._wait_until_saved()
        except TimeoutError:
            saved = self.saved_positions.get(subjects.CONTROL, 0)
            why = f"the read side is at position {saved}, not yet at {position}; try again"
            raise unavailable(why) from None

    async def save_all(self) -> bool:
        # Who was overtaken must fold on, or never gets to where it may save.
        if self._overtaken or self.portions.is_saved(self.portions.folded):
            return False
        await self._wait_until_saved()
        return True

    async def _wait_until_saved(self) -> None:
        self._waiting_readers += 1
        self._save_now.set()
        try:
            await self.portions.saved.wait_for_position(self.portions.folded)
        finally:
            self._waiting_readers -= 1
