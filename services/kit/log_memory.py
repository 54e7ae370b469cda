"""The in-memory equivalent of the JetStream log: same rules, no broker, no delays.

For tests and simulations.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache, partial

from det_contracts import subjects as names
from det_contracts.limits import EVENT_BYTES, WITNESS_MESSAGES
from services.kit.lag import Behind
from services.kit.log import (
    BATCH_LIMIT,
    Batch,
    Draft,
    Fence,
    FenceLost,
    Gone,
    LogTruncated,
    NotStored,
    Stored,
    TooLarge,
)

READ_LIMIT = 500


class _Grown:
    """Signals that something was appended. A waiter may be cancelled safely, because no lock is held."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[None], None] = {}

    def tell(self) -> None:
        """Wake all waiters."""
        waiting, self._waiting = self._waiting, {}
        for one in waiting:
            if not one.done():
                one.set_result(None)

    async def next(self) -> None:
        """Wait for the next signal."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = None
        try:
            await waiter
        finally:
            self._waiting.pop(waiter, None)


class MemoryLog:
    """Streams as lists. Positions start at 1 and have no gaps."""

    def __init__(self) -> None:
        self.streams: dict[str, list[Stored]] = {stream: [] for stream in names.STREAM_SUBJECTS}
        self._ids: dict[str, int] = {}
        self._last: dict[str, Stored] = {}
        self._grown = _Grown()
        self.forgotten: dict[str, int] = dict.fromkeys(self.streams, 0)
        """Per stream, the position up to which it can no longer be read."""
        self._waiting: dict[str, list[int]] = {}
        """Per WITNESS subject, the positions of its messages."""

    async def append(self, draft: Draft) -> int:
        _check_size(draft)
        if draft.id in self._ids:
            return self._ids[draft.id]
        self._check_room(draft.subject)
        position = self._store(draft)
        self._grown.tell()
        return position

    async def append_batch(self, drafts: Sequence[Draft], *, fence: Fence) -> int:
        if len(drafts) > BATCH_LIMIT:
            raise ValueError(f"a batch takes {BATCH_LIMIT} messages, not {len(drafts)}")
        if len(drafts) > 1 and drafts[0].subject != fence.subject:
            raise ValueError(f"the batch must begin on {fence.subject}, not on {drafts[0].subject}")
        for draft in drafts:
            _check_size(draft)
        if len(drafts) == 1 and drafts[0].id in self._ids:
            return self._ids[drafts[0].id]
        newest = await self.last(fence.subject)
        if (newest.position if newest else 0) != fence.last:
            raise FenceLost(f"{fence.subject} has moved past position {fence.last}")
        position = 0
        for draft in drafts:
            position = self._store(draft)
        self._grown.tell()
        return position

    def _check_room(self, subject: str) -> None:
        """Refuse a WITNESS message if its sender has too many that are not admitted yet."""
        if stream_of(subject) != names.WITNESS:
            return
        gone = self.forgotten[names.WITNESS]
        there = self._waiting[subject] = [at for at in self._waiting.get(subject, ()) if at > gone]
        if len(there) >= WITNESS_MESSAGES:
            raise NotStored(f"{subject}: maximum messages per subject exceeded (10077)")
        there.append(len(self.streams[names.WITNESS]) + 1)

    def _store(self, draft: Draft) -> int:
        kept = self.streams[stream_of(draft.subject)]
        stored = Stored(draft.subject, len(kept) + 1, draft.body, draft.trace)
        kept.append(stored)
        self._ids[draft.id] = stored.position
        self._last[draft.subject] = stored
        return stored.position

    @asynccontextmanager
    async def read(
        self, stream: str, *, after: int, subjects: Sequence[str] = ()
    ) -> AsyncIterator[MemoryFeed]:
        end = len(self.streams[stream])
        if after > end:
            raise LogTruncated(f"{stream} ends at position {end}, but {after} was folded already")
        # Readers of other streams do not fail when messages have expired.
        gone = partial(self.forgotten.__getitem__, stream) if stream == names.CONTROL else int
        _check_not_gone(after, gone())
        after = max(after, self.forgotten[stream])
        yield MemoryFeed(self.streams[stream], self._grown, after, subjects, gone)

    async def last(self, subject: str) -> Stored | None:
        found = self._last.get(subject)
        gone = self.forgotten[stream_of(subject)]
        return None if found is None or found.position <= gone else found

    async def bounds(self, stream: str) -> tuple[int, int]:
        return self.forgotten[stream] + 1, len(self.streams[stream])

    async def forget(self, stream: str, through: int) -> None:
        self.forgotten[stream] = max(self.forgotten[stream], through)


class MemoryFeed:
    """A read of a growing list."""

    def __init__(
        self,
        kept: list[Stored],
        grown: _Grown,
        after: int,
        filters: Sequence[str],
        gone: Callable[[], int],
    ) -> None:
        """`gone` returns the position up to which the stream was removed."""
        self._gone = gone
        self._kept = kept
        self._grown = grown
        self._at = after
        self._filters = filters
        self._told = False
        self.behind = Behind()

    async def batch(self) -> Batch:
        while True:
            if not self._filters:
                _check_not_gone(self._at, self._gone())
            found = self._take()
            caught_up = self._at == len(self._kept)
            if found or not self._told:
                self._told = caught_up
                return Batch(found, caught_up)
            if caught_up:
                await self._grown.next()

    def _take(self) -> list[Stored]:
        new = self._kept[self._at : self._at + READ_LIMIT]
        self._at += len(new)
        return [m for m in new if not self._filters or any(matches(f, m.subject) for f in self._filters)]


def _check_not_gone(after: int, forgotten: int) -> None:
    if after < forgotten:
        raise Gone(f"it begins at position {forgotten + 1}: {after + 1} is gone")


def _check_size(draft: Draft) -> None:
    if len(draft.body) > EVENT_BYTES:
        raise TooLarge(f"{draft.subject}: {len(draft.body):,} bytes, the log takes {EVENT_BYTES:,}")


@lru_cache(maxsize=10_000)
def stream_of(subject: str) -> str:
    """Return the stream that stores a subject. Raises ValueError if none does."""
    for stream, pattern in names.STREAM_SUBJECTS.items():
        if matches(pattern, subject):
            return stream
    raise ValueError(f"no stream takes the subject '{subject}'")


@lru_cache(maxsize=100_000)
def matches(pattern: str, subject: str) -> bool:
    """Whether a NATS subject matches a pattern with `*` (one token) and `>` (one or more at the end)."""
    wanted, given = pattern.split("."), subject.split(".")
    for index, token in enumerate(wanted):
        if token == ">":  # noqa: S105 - a part of a subject
            return len(given) > index
        if index >= len(given) or token not in ("*", given[index]):
            return False
    return len(wanted) == len(given)
