"""The brokers that keep the log: what they store, what they reject, and how much of it each one has."""

from asyncio import get_running_loop
from collections import deque
from contextlib import asynccontextmanager
from functools import lru_cache

from det_contracts import subjects as names
from services.kit.lag import Lag
from services.kit.log import Batch, LogTruncated, NotStored
from services.kit.log_memory import MemoryLog, matches, stream_of

READ_LIMIT = 60
SERVERS = 3
IN_FLIGHT = 50
"""Maximum number of batches that were begun but neither finished nor abandoned."""
BATCH_TIMEOUT_S = 10.0
"""The broker abandons an unfinished batch after this time."""
DEDUP_WINDOW_S = 120.0
"""Deduplication window: a message with a known id is not stored again."""


class Server:
    """One broker, as its readers see it."""

    def __init__(self):
        self.lags_at = None
        """Per stream, how many messages it has while it lags behind the others; None while it keeps up."""


class Disk(MemoryLog):
    """What the brokers have stored together: `watch` sees every message as it is stored."""

    def __init__(self, watch):
        super().__init__()
        self._watch = watch
        self._readers = {stream: [] for stream in names.STREAM_SUBJECTS}
        self._grown_streams = {}
        self._dedup_window = deque()
        self._open_batches = deque()
        self.servers = [Server() for _ in range(SERVERS)]
        self.leader = self.servers[0]
        """The broker that accepts appends; None during an election."""
        self.full = False
        """Appends are neither accepted nor answered."""
        self.refuses = ""
        """Why appends are rejected; the sender is told."""

    # -- appending

    async def append(self, draft):
        self._expire_or_reject()
        position = await super().append(draft)
        self._wake_readers()
        return position

    async def append_batch(self, drafts, *, fence):
        self._expire_or_reject()
        if len(drafts) > 1 and len(self._open_batches) >= IN_FLIGHT:
            raise NotStored(f"{fence.subject}: {IN_FLIGHT} batches are in flight")
        position = await super().append_batch(drafts, fence=fence)
        self._wake_readers()
        return position

    def _expire_or_reject(self):
        now = get_running_loop().time()
        while self._dedup_window and self._dedup_window[0][0] < now - DEDUP_WINDOW_S:
            self._ids.pop(self._dedup_window.popleft()[1], None)
        while self._open_batches and self._open_batches[0] < now - BATCH_TIMEOUT_S:
            self._open_batches.popleft()
        if self.refuses:
            raise NotStored(self.refuses)

    def begin(self, batches=1):
        """Begin batches that are never finished."""
        self._open_batches.extend([get_running_loop().time()] * batches)

    def _store(self, draft):
        position = super()._store(draft)
        stored = self._last[draft.subject]
        self._dedup_window.append((get_running_loop().time(), draft.id))
        self._grown_streams[stream_of(draft.subject)] = None
        self._watch(stored)
        return position

    def repeat(self, draft):
        """Store a message again whose id the deduplication window has forgotten."""
        self._store(draft)
        self._wake_readers()

    # -- reading

    def stop(self, server):
        """Stop replication to a broker; it does not notice."""
        server.lags_at = {stream: len(messages) for stream, messages in self.streams.items()}

    def resume(self, server):
        """Let the broker catch up."""
        server.lags_at = None
        for readers in self._readers.values():
            for reader in readers:
                reader.wake()

    def _wake_readers(self):
        for stream in self._grown_streams:
            for reader in self._readers[stream]:
                reader.wake()
        self._grown_streams.clear()

    @asynccontextmanager
    async def read(self, stream, *, after, subjects=(), line=None):
        # The leader says where a stream ends, whichever broker it is read from.
        end = len(self.streams[stream])
        if after > end:
            raise LogTruncated(f"{stream} ends at position {end}, but {after} was folded already")
        reader = Reader(self, stream, after, tuple(subjects), line)
        self._readers[stream].append(reader)
        try:
            yield reader
        finally:
            self._readers[stream].remove(reader)


class Reader:
    """A read that lags as much as its line, and as the broker at the other end."""

    def __init__(self, disk, stream, after, filters, line):
        self._messages = disk.streams[stream]
        self._forgotten = disk.removed_through
        self._stream = stream
        self.position = after
        self._filters = filters
        self._line = line
        self._server = disk.servers[0]
        self._is_end_reported = False
        self._waiter = None
        self._is_waking = False
        self._loop = get_running_loop()
        self.lag = Lag()

    def _end(self):
        """How many messages its broker has."""
        lags_at = (self._server if self._line is None else self._line.server).lags_at
        return len(self._messages) if lags_at is None else lags_at[self._stream]

    def wake(self):
        """Notify the reader that there may be something new."""
        if self._waiter is not None and not self._is_waking and self._has_new():
            self._schedule_wake()

    def _schedule_wake(self):
        self._is_waking = True
        self._loop.call_later(self._line.pace() if self._line else 0.0, self._arrive)

    def _arrive(self):
        if self._line is not None and self._line.cut:
            self._loop.call_later(1.0, self._arrive)
            return
        self._is_waking, waiter, self._waiter = False, self._waiter, None
        if not waiter.done():
            waiter.set_result(None)

    def _has_new(self):
        """Skip messages that are filtered out or deleted; returns whether there is another one."""
        messages, end = self._messages, self._end()
        self._skip_forgotten()
        if self._filters:
            while self.position < end and not matches_any(self._filters, messages[self.position].subject):
                self.position += 1
        return self.position < end

    def _skip_forgotten(self):
        if self.position < (forgotten := self._forgotten[self._stream]):
            self.position = forgotten

    async def batch(self):
        if self._waiter is None or self._waiter.done():
            self._waiter = self._loop.create_future()
        if not self._is_waking and (self._has_new() or not self._is_end_reported):
            self._schedule_wake()
        await self._waiter
        self._skip_forgotten()
        end = self._end()
        until = min(self.position + READ_LIMIT, max(end, self.position))
        messages = self._messages[self.position : until]
        if self._filters:
            messages = [message for message in messages if matches_any(self._filters, message.subject)]
        self.position = until
        self._is_end_reported = caught_up = until >= end
        return Batch(messages, caught_up)


@lru_cache(maxsize=100_000)
def matches_any(filters, subject):
    """Whether a subject matches one of the filters."""
    return any(matches(pattern, subject) for pattern in filters)
