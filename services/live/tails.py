"""Live log tails: one reader per task, shared by all followers of its log."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager

import structlog

from det_contracts import reports, subjects
from services.catalogue.catalogue import Catalogue
from services.catalogue.peers import LogLine
from services.catalogue.waiters import Fact
from services.kit.cancellation import cancel_and_wait, cancel_in_background
from services.kit.log import Log, Stored
from services.kit.log_range import read_between
from services.kit.process_metrics import Reading
from services.live.turns import Turns

LINES_PER_MESSAGE = reports.MAX_LINES_PER_BATCH
"""Line ids are the position in LOGS times this, plus the index in the batch."""
MAX_BATCHES = 256
"""Maximum number of batches buffered per follower. A slower follower must read the stored lines instead."""
MAX_BUFFERED_BYTES = 32 << 20
"""Maximum size of all buffered batches together. Beyond that, followers that lag must re-read as well."""
log = structlog.get_logger()


class LineBatch:
    """A batch of new lines, shared by all followers."""

    def __init__(self, batch: reports.LogBatch, position: int, size: int) -> None:
        self.position = position
        self.size = size
        """Size in the log in bytes."""
        self.waiting_followers = 0
        """Number of followers for which it is buffered."""
        self.source_key = (batch.allocation_id, batch.worker_id, batch.source)
        self.offset = batch.offset
        self.lines = list(_lines(batch, position))
        self._rendered: dict[object, list[bytes]] = {}

    def rendered(self, kind: object, render: Callable[[LogLine], bytes]) -> list[bytes]:
        """Return each line as written by `render`, computed once per `kind` of follower."""
        if kind not in self._rendered:
            self._rendered[kind] = [render(line) for line in self.lines]
        return self._rendered[kind]


def _lines(batch: reports.LogBatch, position: int) -> Iterator[LogLine]:
    for index, line in enumerate(batch.lines):
        yield LogLine(
            id=position * LINES_PER_MESSAGE + index,
            task_id=batch.task_id,
            allocation_id=batch.allocation_id,
            worker_id=batch.worker_id,
            at=line.at,
            level=line.level,
            rank=line.rank,
            source=batch.source,
            stdtype=line.stdtype,
            text=line.text,
        )


def decode_batch(message: Stored) -> LineBatch | None:
    """Decode the lines of a message; None if it is unreadable."""
    batch = reports.log_batch(message.subject, message.body)
    return None if batch is None else LineBatch(batch, message.position, len(message.body))


class BufferUsage:
    """Counts buffered batches, each once, however many followers it waits for."""

    def __init__(self) -> None:
        self.bytes = 0

    def add(self, fresh: LineBatch) -> None:
        """Count one more follower for a batch."""
        self.bytes += 0 if fresh.waiting_followers else fresh.size
        fresh.waiting_followers += 1

    def remove(self, fresh: LineBatch) -> None:
        """Count one follower less for a batch."""
        fresh.waiting_followers -= 1
        self.bytes -= 0 if fresh.waiting_followers else fresh.size


class Tail:
    """The new lines for one follower."""

    def __init__(self, after: int, buffer_usage: BufferUsage) -> None:
        self.after = after
        """Everything behind this position of LOGS arrives, unless `overflowed`."""
        self.overflowed = False
        """True if more arrived than could be buffered."""
        self.ended = False
        """True if nothing more will arrive."""
        self.failure: BaseException | None = None
        self._newest = after
        self._buffer_usage = buffer_usage
        self._fresh: deque[LineBatch] = deque()
        self._changed = asyncio.Event()

    def put(self, fresh: LineBatch) -> None:
        """Add a batch."""
        self._newest = fresh.position
        # Only one that has something waiting: otherwise a single slow follower would make all others read
        # again.
        if len(self._fresh) >= MAX_BATCHES or (self._fresh and self._buffer_usage.bytes > MAX_BUFFERED_BYTES):
            self.overflowed = True
            self.clear()
        if not self.overflowed:
            self._fresh.append(fresh)
            self._buffer_usage.add(fresh)
        self._changed.set()

    def clear(self) -> None:
        """Discard the buffered batches."""
        while self.pop() is not None:
            pass

    def end(self, failure: BaseException | None = None) -> None:
        """Mark the end, or the failure that ended reading."""
        self.ended, self.failure = True, failure
        self._changed.set()

    def resume(self) -> None:
        """Resume after a loss. What was lost, up to `after`, must be read elsewhere."""
        self.overflowed, self.after = False, self._newest

    def pop(self) -> LineBatch | None:
        """Return the next buffered batch, or None."""
        if not self._fresh:
            return None
        fresh = self._fresh.popleft()
        self._buffer_usage.remove(fresh)
        return fresh

    async def wait_for_batch(self, within_s: float) -> None:
        """Wait for a batch or the end, at most `within_s` seconds."""
        if self._fresh:
            return
        if not (self.ended or self.overflowed):
            self._changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._changed.wait()


class _Reader:
    """Reads one task's part of LOGS from its current end, until the task is over and its log complete."""

    def __init__(
        self,
        journal: Log,
        catalogue: Catalogue,
        task_id: str,
        is_over: Fact,
        read: Callable[[Stored], LineBatch | None],
    ) -> None:
        self._journal = journal
        self._catalogue = catalogue
        self._read = read
        self._subjects = [subjects.logs(task_id)]
        self._is_over = is_over
        self.tails: dict[Tail, None] = {}
        self.position = 0
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        failure: BaseException | None = None
        try:
            _, self.position = await self._journal.bounds(subjects.LOGS)
            await self._follow()
            await self._read_remaining()
        except BaseException as error:
            failure = error
            if not isinstance(error, Exception):
                raise
        finally:
            self._end(failure)

    def _end(self, failure: BaseException | None) -> None:
        if not self.ready.done():
            self.ready.set_result(None)
        for tail in self.tails:
            tail.end(failure)

    async def _follow(self) -> None:
        task_over = asyncio.create_task(self._catalogue.wait_until(self._is_over))
        try:
            async with self._journal.read(
                subjects.LOGS, after=self.position, subjects=self._subjects
            ) as feed:
                self.ready.set_result(None)
                next_batch = asyncio.create_task(feed.batch())
                try:
                    while not task_over.done():
                        await asyncio.wait({next_batch, task_over}, return_when=asyncio.FIRST_COMPLETED)
                        if next_batch.done():
                            self._distribute(next_batch.result().messages)
                            next_batch = asyncio.create_task(feed.batch())
                    # Where it cannot be said whether the task is over, its log must not look complete.
                    task_over.result()
                finally:
                    await cancel_and_wait(next_batch)
        finally:
            task_over.cancel()

    async def _read_remaining(self) -> None:
        """Read what is left after the task is over."""
        reading = read_between(self._journal, subjects.LOGS, after=self.position, subjects=self._subjects)
        async with aclosing(reading) as batches:
            async for messages in batches:
                self._distribute(messages)

    def _distribute(self, messages: Sequence[Stored]) -> None:
        for message in messages:
            self.position = message.position
            if (batch := self._read(message)) is not None:
                for tail in self.tails:
                    tail.put(batch)


class Tails:
    """All logs that are followed at this gateway."""

    def __init__(self, journal: Log, catalogue: Catalogue) -> None:
        self.journal = journal
        self.turns = Turns()
        self._catalogue = catalogue
        self._readers: dict[str, _Reader] = {}
        self._buffer_usage = BufferUsage()
        self._skipped = 0

    def readings(self) -> Iterable[Reading]:
        """Prometheus readings."""
        buffered = "Bytes of log lines buffered for followers"
        yield Reading("log_tail_bytes", buffered, (), {(): self._buffer_usage.bytes})
        skipped = "Unreadable batches of log lines that were skipped"
        yield Reading("log_batches_skipped", skipped, (), {(): self._skipped})

    def read(self, message: Stored) -> LineBatch | None:
        """Decode the lines of a message; None, and counted, if it is unreadable."""
        fresh = decode_batch(message)
        if fresh is None:
            self._skipped += 1
            log.warning("logs.skipped", position=message.position, subject=message.subject)
        return fresh

    def __len__(self) -> int:
        return sum(len(reader.tails) for reader in self._readers.values())

    @asynccontextmanager
    async def tail(self, task_id: str, is_over: Fact) -> AsyncIterator[Tail]:
        """Follow a task's log from now on. `is_over` says that its writers are gone."""
        reader = self._readers.get(task_id)
        if reader is None or reader.task.done():
            reader = self._readers[task_id] = _Reader(
                self.journal, self._catalogue, task_id, is_over, self.read
            )
        tail = Tail(reader.position, self._buffer_usage)
        # Before the wait: from the moment at which the reader is ready it hands out batches.
        reader.tails[tail] = None
        try:
            # Others wait for the same future, which must not be cancelled with this one.
            await asyncio.shield(reader.ready)
            # Nothing was delivered before the reader was ready.
            tail.after = tail.after or reader.position
            yield tail
        finally:
            reader.tails.pop(tail, None)
            tail.clear()
            self._release_reader(task_id, reader)

    def _release_reader(self, task_id: str, reader: _Reader) -> None:
        if reader.tails:
            return
        cancel_in_background(reader.task)
        if self._readers.get(task_id) is reader:
            del self._readers[task_id]
