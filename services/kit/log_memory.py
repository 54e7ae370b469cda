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
from services.kit.lag import Lag
from services.kit.log import (
    BATCH_LIMIT,
    Batch,
    Draft,
    Fence,
    FenceLost,
    LogTruncated,
    NotStored,
    PositionRemoved,
    Stored,
    TooLarge,
)

READ_LIMIT = 500


class _AppendSignal:
    """Signals that something was appended. A waiter may be cancelled safely, because no lock is held."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[None], None] = {}

    def notify(self) -> None:
        """Wake all waiters."""
        waiting, self._waiting = self._waiting, {}
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self) -> None:
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
        self._append_signal = _AppendSignal()
        self.removed_through: dict[str, int] = dict.fromkeys(self.streams, 0)
        """Per stream, the position up to which it can no longer be read."""
        self._waiting: dict[str, list[int]] = {}
        """Per WITNESS subject, the positions of its messages."""

    async def append(self, draft: Draft) -> int:
        _check_size(draft)
        if draft.id in self._ids:
            return self._ids[draft.id]
        self._check_inbox_limit(draft.subject)
        position = self._store(draft)
        self._append_signal.notify()
        return position

    async def append_batch(self, drafts: Sequence[Draft], *, fence: Fence) -> int:
        if len(drafts) > BATCH_LIMIT:
            raise ValueError(f"a batch takes {BATCH_LIMIT} messages, not {len(drafts)}")
        if len(drafts) > 1 and drafts[0].subject != fence.subject:
            raise ValueError(f"the batch must begin on {fence.subject}, not on {drafts[0].subject}")
        for draft in drafts:
            _check_size(draft)
        # As the broker does it: a single message has its id compared before the fence is checked.
        if len(drafts) == 1 and drafts[0].id in self._ids:
            return self._ids[drafts[0].id]
        newest = await self.last(fence.subject)
        if (newest.position if newest else 0) != fence.last:
            raise FenceLost(f"{fence.subject} has moved past position {fence.last}")
        position = 0
        for draft in drafts:
            position = self._store(draft)
        self._append_signal.notify()
        return position

    def _check_inbox_limit(self, subject: str) -> None:
        """Refuse a WITNESS message if its sender has too many that are not admitted yet."""
        if stream_of(subject) != names.WITNESS:
            return
        removed = self.removed_through[names.WITNESS]
        there = self._waiting[subject] = [at for at in self._waiting.get(subject, ()) if at > removed]
        if len(there) >= WITNESS_MESSAGES:
            raise NotStored(f"{subject}: maximum messages per subject exceeded (10077)")
        there.append(len(self.streams[names.WITNESS]) + 1)

    def _store(self, draft: Draft) -> int:
        messages = self.streams[stream_of(draft.subject)]
        stored = Stored(draft.subject, len(messages) + 1, draft.body, draft.trace)
        messages.append(stored)
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
        removed = partial(self.removed_through.__getitem__, stream) if stream == names.CONTROL else int
        _check_not_removed(after, removed())
        after = max(after, self.removed_through[stream])
        yield MemoryFeed(self.streams[stream], self._append_signal, after, subjects, removed)

    async def last(self, subject: str) -> Stored | None:
        message = self._last.get(subject)
        removed = self.removed_through[stream_of(subject)]
        return None if message is None or message.position <= removed else message

    async def end(self, stream: str, *, after: int, subjects: Sequence[str] = ()) -> int:
        messages, removed = self.streams[stream], self.removed_through[stream]
        ends = (
            at for at in range(len(messages), max(after, removed), -1) if _passes(subjects, messages[at - 1])
        )
        return next(ends, after)

    async def bounds(self, stream: str) -> tuple[int, int]:
        return self.removed_through[stream] + 1, len(self.streams[stream])

    async def forget(self, stream: str, through: int) -> None:
        self.removed_through[stream] = max(self.removed_through[stream], through)


class MemoryFeed:
    """A read of a growing list."""

    def __init__(
        self,
        messages: list[Stored],
        append_signal: _AppendSignal,
        after: int,
        filters: Sequence[str],
        removed: Callable[[], int],
    ) -> None:
        """`removed` returns the position up to which the stream was removed."""
        self._removed_through = removed
        self._messages = messages
        self._append_signal = append_signal
        self.position = after
        self._filters = filters
        self._was_caught_up = False
        self.lag = Lag()

    async def batch(self) -> Batch:
        while True:
            if not self._filters:
                _check_not_removed(self.position, self._removed_through())
            messages = self._read_next()
            caught_up = self.position == len(self._messages)
            if messages or not self._was_caught_up:
                self._was_caught_up = caught_up
                return Batch(messages, caught_up)
            if caught_up:
                await self._append_signal.wait()

    def _read_next(self) -> list[Stored]:
        new = self._messages[self.position : self.position + READ_LIMIT]
        self.position += len(new)
        return [message for message in new if _passes(self._filters, message)]


def _passes(filters: Sequence[str], message: Stored) -> bool:
    return not filters or any(matches(pattern, message.subject) for pattern in filters)


def _check_not_removed(after: int, removed_through: int) -> None:
    if after < removed_through:
        raise PositionRemoved(f"it begins at position {removed_through + 1}: {after + 1} is gone")


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
    wanted, tokens = pattern.split("."), subject.split(".")
    for index, token in enumerate(wanted):
        if token == ">":  # noqa: S105 - a part of a subject
            return len(tokens) > index
        if index >= len(tokens) or token not in ("*", tokens[index]):
            return False
    return len(wanted) == len(tokens)
