"""Live log tails: one reader per task, shared by all followers of its log."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, nullcontext

import structlog

from det_contracts import reports, subjects
from services.catalogue.catalogue import Catalogue
from services.catalogue.peers import Line
from services.catalogue.waiting import Fact
from services.kit.admission import Admission
from services.kit.log import Log, Stored
from services.kit.process_metrics import Reading
from services.kit.task_ending import end, end_soon
from services.live.turns import Turns

LINES_PER_MESSAGE = reports.LINES_OF_BATCH
"""Line ids are the position in LOGS times this, plus the index in the batch."""
LONGEST = 256
"""Maximum number of batches buffered per follower. A slower follower must read the stored lines instead."""
KEPT_BYTES = 32 << 20
"""Maximum size of all buffered batches together. Beyond that, followers that lag must re-read as well."""
log = structlog.get_logger()


class Fresh:
    """A batch of new lines, shared by all followers."""

    def __init__(self, batch: reports.LogBatch, position: int, size: int) -> None:
        self.position = position
        self.size = size
        """Size in the log in bytes."""
        self.waited_for = 0
        """Number of followers for which it is buffered."""
        self.place = (batch.allocation_id, batch.worker_id, batch.source)
        self.offset = batch.offset
        self.lines = list(_lines(batch, position))
        self._rendered: dict[object, list[bytes]] = {}

    def rendered(self, kind: object, render: Callable[[Line], bytes]) -> list[bytes]:
        """Return each line as written by `render`, computed once per `kind` of follower."""
        if kind not in self._rendered:
            self._rendered[kind] = [render(line) for line in self.lines]
        return self._rendered[kind]


def _lines(batch: reports.LogBatch, position: int) -> Iterator[Line]:
    for index, line in enumerate(batch.lines):
        yield Line(
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


def fresh_of(message: Stored) -> Fresh | None:
    """Decode the lines of a message; None if it is unreadable."""
    batch = reports.log_batch(message.subject, message.body)
    return None if batch is None else Fresh(batch, message.position, len(message.body))


class Kept:
    """Counts buffered batches, each once, however many followers it waits for."""

    def __init__(self) -> None:
        self.bytes = 0

    def add(self, fresh: Fresh) -> None:
        """Count one more follower for a batch."""
        self.bytes += 0 if fresh.waited_for else fresh.size
        fresh.waited_for += 1

    def remove(self, fresh: Fresh) -> None:
        """Count one follower less for a batch."""
        fresh.waited_for -= 1
        self.bytes -= 0 if fresh.waited_for else fresh.size


class Tail:
    """The new lines for one follower."""

    def __init__(self, after: int, kept: Kept) -> None:
        self.after = after
        """Everything behind this position of LOGS arrives, unless `lost`."""
        self.lost = False
        """True if more arrived than could be buffered."""
        self.over = False
        """True if nothing more will arrive."""
        self.failure: BaseException | None = None
        self._newest = after
        self._kept = kept
        self._fresh: deque[Fresh] = deque()
        self._news = asyncio.Event()

    def put(self, fresh: Fresh) -> None:
        """Add a batch."""
        self._newest = fresh.position
        if len(self._fresh) >= LONGEST or (self._fresh and self._kept.bytes > KEPT_BYTES):
            self.lost = True
            self.let_go()
        if not self.lost:
            self._fresh.append(fresh)
            self._kept.add(fresh)
        self._news.set()

    def let_go(self) -> None:
        """Discard the buffered batches."""
        while self.take() is not None:
            pass

    def end(self, failure: BaseException | None = None) -> None:
        """Mark the end, or the failure that ended reading."""
        self.over, self.failure = True, failure
        self._news.set()

    def begin_again(self) -> None:
        """Resume after a loss. What was lost, up to `after`, must be read elsewhere."""
        self.lost, self.after = False, self._newest

    def take(self) -> Fresh | None:
        """Return the next buffered batch, or None."""
        if not self._fresh:
            return None
        fresh = self._fresh.popleft()
        self._kept.remove(fresh)
        return fresh

    async def news(self, within_s: float) -> None:
        """Wait for a batch or the end, at most `within_s` seconds."""
        if self._fresh:
            return
        if not (self.over or self.lost):
            self._news.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._news.wait()


class _Reader:
    """Reads one task's part of LOGS from its current end, until the task is over and its log complete."""

    def __init__(
        self,
        journal: Log,
        catalogue: Catalogue,
        task_id: str,
        is_over: Fact,
        read: Callable[[Stored], Fresh | None],
    ) -> None:
        self._journal = journal
        self._catalogue = catalogue
        self._read = read
        self._subjects = [subjects.logs(task_id)]
        self._is_over = is_over
        self.tails: dict[Tail, None] = {}
        self.position = 0
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.work = asyncio.create_task(self._run())

    async def _run(self) -> None:
        failure: BaseException | None = None
        try:
            _, self.position = await self._journal.bounds(subjects.LOGS)
            await self._follow()
            await self._rest()
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
        over = asyncio.create_task(self._catalogue.until(self._is_over))
        try:
            async with self._journal.read(
                subjects.LOGS, after=self.position, subjects=self._subjects
            ) as feed:
                self.ready.set_result(None)
                coming = asyncio.create_task(feed.batch())
                try:
                    while not over.done():
                        await asyncio.wait({coming, over}, return_when=asyncio.FIRST_COMPLETED)
                        if coming.done():
                            self._hand_out(coming.result().messages)
                            coming = asyncio.create_task(feed.batch())
                finally:
                    await end(coming)
        finally:
            over.cancel()

    async def _rest(self) -> None:
        """Read what is left after the task is over; a fresh read knows when it has caught up."""
        async with aclosing(between(self._journal, self._subjects, self.position)) as batches:
            async for messages in batches:
                self._hand_out(messages)

    def _hand_out(self, messages: Sequence[Stored]) -> None:
        for message in messages:
            self.position = message.position
            if (fresh := self._read(message)) is not None:
                for tail in self.tails:
                    tail.put(fresh)


async def between(
    journal: Log, where: list[str], after: int, upto: int | None = None, reads: Admission | None = None
) -> AsyncGenerator[Sequence[Stored], None]:
    """Yield the messages behind a position of LOGS, up to another position or the current end.

    Opening the read takes a place in `reads`, which is released before the messages are consumed.
    """
    async with AsyncExitStack() as stack:
        async with reads.place("") if reads is not None else nullcontext():
            feed = await stack.enter_async_context(journal.read(subjects.LOGS, after=after, subjects=where))
            batch = await feed.batch()
        while True:
            yield [one for one in batch.messages if upto is None or one.position <= upto]
            last = batch.messages[-1].position if batch.messages else 0
            if batch.caught_up or (upto is not None and last >= upto):
                return
            batch = await feed.batch()


class Tails:
    """All logs that are followed at this gateway."""

    def __init__(self, journal: Log, catalogue: Catalogue) -> None:
        self.journal = journal
        self.turns = Turns()
        self._catalogue = catalogue
        self._readers: dict[str, _Reader] = {}
        self._kept = Kept()
        self._skipped = 0

    def readings(self) -> Iterable[Reading]:
        """Prometheus readings."""
        kept = "Bytes of log lines buffered for followers"
        yield Reading("log_tail_bytes", kept, (), {(): self._kept.bytes})
        skipped = "Unreadable batches of log lines that were skipped"
        yield Reading("log_batches_skipped", skipped, (), {(): self._skipped})

    def read(self, message: Stored) -> Fresh | None:
        """Decode the lines of a message; None, and counted, if it is unreadable."""
        fresh = fresh_of(message)
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
        if reader is None or reader.work.done():
            reader = self._readers[task_id] = _Reader(
                self.journal, self._catalogue, task_id, is_over, self.read
            )
        tail = Tail(reader.position, self._kept)
        reader.tails[tail] = None
        try:
            await asyncio.shield(reader.ready)
            # Nothing was delivered before the reader was ready.
            tail.after = tail.after or reader.position
            yield tail
        finally:
            reader.tails.pop(tail, None)
            tail.let_go()
            self._let_go(task_id, reader)

    def _let_go(self, task_id: str, reader: _Reader) -> None:
        if reader.tails:
            return
        end_soon(reader.work)
        if self._readers.get(task_id) is reader:
            del self._readers[task_id]
