"""Copies the database beside the running service, and removes what the newest copy does not need.

The newest copy is the one that the log says is newest (`metrics.database.copied`). Each is announced on the
condition that the copy on which it is based is still the newest. So of two processes that copy at the same
time one is refused, and a kill at any moment leaves only objects that no copy names: the next copy removes
them.
"""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import structlog

from det_contracts import codec, subjects
from det_contracts.events.metrics import DatabaseCopied
from services.kit.database import Database
from services.kit.log import Draft, Fence, Log
from services.kit.records import read_event
from services.metrics.copies.store import BadCopy, CopyStore, Manifest
from services.metrics.copies.writing import Written, write_copy

NONE = DatabaseCopied(owner="", copy="", before="", through={}, size=0, reason="")
log = structlog.get_logger()


class Newest(NamedTuple):
    """The newest copy according to the log."""

    fact: DatabaseCopied
    at: float
    """Time of its announcement, in seconds since the epoch."""


async def newest_copy(journal: Log, owner: str) -> Newest:
    """Return an owner's newest copy. If there is none, its fields are empty."""
    message = await journal.last(_subject(owner))
    if message is None:
        return Newest(NONE, 0.0)
    recorded = read_event(message)
    if not isinstance(recorded.event, DatabaseCopied):
        raise BadCopy(
            f"message {message.position} of CONTROL describes the copy of the database in an unknown format: "
            "update Steadfast"
        )
    return Newest(recorded.event, recorded.at)


def _subject(owner: str) -> str:
    return codec.subject_of(DatabaseCopied(owner=owner, copy="", before="", through={}, size=0, reason=""))


class Copier:
    """Makes copies of one process's database."""

    def __init__(
        self,
        owner: str,
        database: Database,
        journal: Log,
        stream: Log,
        store: CopyStore,
        *,
        interval_s: float,
        keep_s: float = 0.0,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        """`journal` is the whole log, `stream` the part of it in the broker, where the fence is.

        A copy is kept for `keep_s` seconds after the next one was made.
        """
        self._owner = owner
        self._database = database
        self._journal = journal
        self._stream = stream
        self._store = store
        self._interval_s = interval_s
        self._keep_s = keep_s
        self._clock = clock
        self._new_id = new_id
        self.missing: dict[str, int] = {}
        """Messages by stream that are neither in a copy nor in the broker any more."""

    async def copy_if_due(self, saved: Mapping[str, int]) -> bool:
        """Make a copy if one is due, given what is in the database; returns whether one was made.

        Raises OSError if the store fails, `FenceLost` if another process was faster, and `LogError`.
        """
        newest = await newest_copy(self._journal, self._owner)
        due = await self._is_due(newest, saved)
        if due:
            await self._copy(newest.fact)
            newest = await newest_copy(self._journal, self._owner)
        await self._find_missing(newest.fact, saved)
        return due

    async def _is_due(self, newest: Newest, saved: Mapping[str, int]) -> bool:
        through = newest.fact.through
        if all(through.get(stream, 0) >= position for stream, position in saved.items()):
            return False
        if self._clock() - newest.at >= self._interval_s:
            return True
        for stream, position in saved.items():
            # Nothing leaves CONTROL unless it is archived.
            if stream == subjects.CONTROL:
                continue
            first, last = await self._stream.bounds(stream)
            # What a stream holds and the copy lacks would have to be read again. The stream drops its oldest
            # messages, and half of it is left to make the copy in.
            if position > through.get(stream, 0) < first - 1 + (last - first + 1) / 2:
                return True
        return False

    async def _find_missing(self, fact: DatabaseCopied, saved: Mapping[str, int]) -> None:
        missing = {}
        for stream in saved:
            first, _ = await self._journal.bounds(stream)
            if (count := first - 1 - fact.through.get(stream, 0)) > 0:
                missing[stream] = count
        self.missing = missing

    async def _copy(self, base: DatabaseCopied) -> None:
        announced = await self._stream.last(_subject(self._owner))
        # The archive may have removed it from the broker, which then compares with nothing.
        fence = Fence(_subject(self._owner), announced.position if announced is not None else 0)
        # Before anything is stored: what another process stores meanwhile must not be removed.
        there = await asyncio.to_thread(self._store.keys)
        written = await self._write(base, there)
        if written is None:
            return
        await self._announce(written, fence)
        needed = await asyncio.to_thread(self._needed, written)
        await asyncio.to_thread(self._remove, there - needed)
        log.info("database.copied", copy=written.key, bytes=written.manifest.size, added=written.added)

    async def _write(self, base: DatabaseCopied, there: set[str]) -> Written | None:
        previous = await asyncio.to_thread(self._manifest, base.copy)
        stop = threading.Event()
        write = partial(
            write_copy,
            store=self._store,
            owner=self._owner,
            base=(base.copy, previous),
            there=there,
            stop=stop,
            at=self._clock(),
        )
        try:
            return await self._database.read(write)
        finally:
            # A thread cannot be cancelled, and the process waits for it when it ends.
            stop.set()

    def _manifest(self, key: str) -> Manifest | None:
        """The manifest of an earlier copy. Pages that only it names are stored again."""
        if not key:
            return None
        try:
            return self._store.manifest(key, self._owner)
        except BadCopy as error:
            log.warning(
                "copy.damaged", copy=key, error=str(error), advice="what only it names is copied again"
            )
            return None

    async def _announce(self, written: Written, fence: Fence) -> None:
        manifest = written.manifest
        fact = DatabaseCopied(
            owner=self._owner,
            copy=written.key,
            before=manifest.before,
            through=manifest.positions,
            size=manifest.size,
            reason=f"{written.added} bytes of it had changed since the copy before",
        )
        id = self._new_id()
        body = codec.encode(fact, id=id, actor=self._owner, at=self._clock())
        await self._stream.append_batch([Draft(fence.subject, body, id)], fence=fence)

    def _needed(self, written: Written) -> set[str]:
        """The names of the objects of this copy, and of those that a backup of the log may still name."""
        manifest: Manifest | None = written.manifest
        key, needed = written.key, set[str]()
        while manifest is not None:
            needed |= manifest.keys | {key}
            key, replaced_at = manifest.before, manifest.at
            is_kept = replaced_at > self._clock() - self._keep_s
            manifest = self._manifest(key) if is_kept else None
        return needed

    def _remove(self, keys: set[str]) -> None:
        for key in sorted(keys):
            self._store.delete(key)
