"""Logs as streams: the existing lines, then each new one until the task is over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from functools import partial

import msgspec

from det_contracts import queries, subjects
from det_contracts.problems import unavailable
from services.catalogue.peers import LogLine, Peers
from services.catalogue.waiters import Fact
from services.kit import patterns
from services.kit.admission import Admission
from services.kit.jetstream_feed import READ_ERRORS
from services.kit.log_range import read_between
from services.live.tails import LINES_PER_MESSAGE, LineBatch, Tail, Tails

PAGE = 1000
RECHECK_S = 300.0
"""Interval in seconds at which a stream checks that its reader still has permission."""
READS_AT_ONCE, READS_EACH = 8, 4
"""Maximum number of reads in total, and of one user: all others find a place beside two such."""
Lines = Sequence[LogLine]
Render = Callable[[LogLine], bytes]


async def read(peers: Peers, query: queries.LogPage, limit: int) -> AsyncIterator[Lines]:
    """Yield the existing lines, at most `limit` (0: all), newest first if the query says so."""
    left = limit
    while True:
        size = min(left, PAGE) if limit else PAGE
        page = await peers.log_page(query, limit=size)
        yield page.lines
        left -= len(page.lines)
        if not page.more or (limit and left <= 0):
            return
        query = msgspec.structs.replace(query, after_id=page.cursor)


class FollowerResources:
    """State shared by all log followers at this gateway."""

    def __init__(self, peers: Peers, tails: Tails) -> None:
        self.peers = peers
        self.tails = tails
        self.reads = Admission("reads of logs", at_once=READS_AT_ONCE, each=READS_EACH)
        """Limits reads of stored lines, so that followers queue among themselves and delay no one else."""


class Follower:
    """One reader of one task's log."""

    def __init__(
        self,
        following: FollowerResources,
        query: queries.LogPage,
        *,
        user: str,
        is_over: Fact,
        holds: Callable[[Fact], bool],
        recheck: Callable[[], object],
        render: Render,
        kind: object,
    ) -> None:
        """`is_over` says whether the task writes nothing more, and `holds` whether that is so; `recheck`
        raises once reading must end.

        `render` formats a line; followers of one `kind` share the result.
        """
        self._shared = following
        self._query = query
        self._read_place = partial(following.reads.hold, user)
        self._search = patterns.search(query.regex) if query.regex else None
        self._is_over = is_over
        self._holds = holds
        self._recheck = recheck
        self._render = render
        self._kind = kind
        self._subjects = [subjects.logs(query.task_id)]
        self._offsets: dict[tuple[str, str, str], int] = {}
        self._through = 0

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield every line once, in order, until the task is over and its log complete."""
        try:
            # Closed here and now: a reader who hangs up must not leave its subscription to the garbage
            # collector.
            async with aclosing(self._pages()) as pages:
                async for page in pages:
                    yield page
        except READ_ERRORS as error:
            raise unavailable(f"the log cannot be read just now: {error!r}; try again") from error

    async def _pages(self) -> AsyncGenerator[bytes, None]:
        async for page in self._stored_lines():
            yield page
        if self._holds(self._is_over):
            async for page in self._unstored_lines(None):
                yield page
            return
        # Opened before the gap is read: lines that arrive meanwhile are buffered, so none falls between
        # stored and new ones.
        async with self._shared.tails.tail(self._query.task_id, self._is_over) as tail:
            while True:
                async for page in self._catch_up(tail.after):
                    yield page
                async for page in self._live_lines(tail):
                    yield page
                if not tail.overflowed:
                    return
                tail.resume()

    async def _catch_up(self, position: int) -> AsyncIterator[bytes]:
        """Yield what came before the tail: lines stored since the last query, or still only in the log."""
        if position > self._through:
            async for page in self._stored_lines():
                yield page
        if position > self._through:
            async for page in self._unstored_lines(position):
                yield page

    async def _unstored_lines(self, through: int | None) -> AsyncIterator[bytes]:
        """Yield what is in LOGS but not stored yet, up to a position or the current end."""
        reading = read_between(
            self._shared.tails.journal,
            subjects.LOGS,
            after=self._through,
            before=through + 1 if through is not None else None,
            subjects=self._subjects,
            opening=self._read_place,
        )
        async with aclosing(reading) as batches:
            async for messages in batches:
                for message in messages:
                    await self._shared.tails.turns.take()
                    if (fresh := self._shared.tails.read(message)) is not None:
                        yield self._render_batch(fresh)
                    self._through = max(self._through, message.position)

    async def _stored_lines(self) -> AsyncIterator[bytes]:
        # A follower that fell behind continues where it was.
        after_id = max(self._query.after_id, (self._through + 1) * LINES_PER_MESSAGE - 1)
        query = msgspec.structs.replace(self._query, after_id=after_id)
        while True:
            async with self._read_place():
                page = await self._shared.peers.log_page(query, limit=PAGE)
            await self._shared.tails.turns.take()
            yield b"".join([self._render(line) for line in page.lines])
            if not page.more:
                self._through = max(self._through, page.through)
                return
            query = msgspec.structs.replace(query, after_id=page.cursor)

    async def _live_lines(self, tail: Tail) -> AsyncIterator[bytes]:
        """Yield lines as they arrive, until the task is over or more arrived than could be buffered."""
        checked = time.monotonic()
        while not tail.overflowed:
            if (fresh := tail.pop()) is not None:
                await self._shared.tails.turns.take()
                yield self._render_batch(fresh)
            elif tail.ended:
                if tail.failure is not None:
                    raise _public_error(tail.failure)
                return
            else:
                await tail.wait_for_batch(RECHECK_S)
            if time.monotonic() - checked >= RECHECK_S:
                self._recheck()
                checked = time.monotonic()

    def _render_batch(self, fresh: LineBatch) -> bytes:
        if fresh.position <= self._through:
            return b""
        self._through = fresh.position
        # A worker may send a batch again after an unknown outcome.
        newest_offset = self._offsets.get(fresh.source_key, -1)
        if 0 <= fresh.offset <= newest_offset:
            return b""
        self._offsets[fresh.source_key] = max(fresh.offset, newest_offset)
        written = fresh.rendered(self._kind, self._render)
        return b"".join(
            [text for line, text in zip(fresh.lines, written, strict=True) if self._matches(line)]
        )

    def _matches(self, line: LogLine) -> bool:
        return _passes_filters(self._query, line) and (
            self._search is None or self._search(line.text.encode()) is not None
        )


def _public_error(failure: BaseException) -> BaseException:
    if isinstance(failure, asyncio.CancelledError):
        return unavailable("this gateway is shutting down; try again")
    return failure


def _passes_filters(query: queries.LogPage, line: LogLine) -> bool:
    """Whether a line passes the filters, just as the metrics service applies them to stored lines."""
    filters = (
        (query.allocation_ids, line.allocation_id),
        (query.worker_ids, line.worker_id),
        (query.ranks, -1 if line.rank is None else line.rank),
        (query.levels, line.level),
        (query.stdtypes, line.stdtype),
        (query.sources, line.source),
    )
    return (
        line.id > query.after_id
        and all(not wanted or value in wanted for wanted, value in filters)
        and (query.before_at is None or line.at <= query.before_at)
        and (query.after_at is None or line.at > query.after_at)
        and (bool(query.regex) or query.text in line.text)
    )
