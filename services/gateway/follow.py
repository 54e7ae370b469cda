"""Logs as streams: the lines there are, and then each new one until the task is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

import msgspec

from det_contracts import queries, reports, subjects
from det_contracts.problems import unavailable
from services.gateway.catalogue import Catalogue
from services.gateway.domain import State
from services.gateway.peers import Line, Peers
from services.kit import patterns
from services.kit.jetstream_feed import AWAY, Broken
from services.kit.log import Log, Stored

PAGE = 1000
RECHECK_S = 300.0
"""How often a stream asks again whether its reader may still read."""
Lines = Sequence[Line]
LINES_PER_MESSAGE = 4096
"""Line ids are the position in LOGS times this, plus the place in the batch."""

_decode = msgspec.json.Decoder(reports.LogBatch).decode


async def read(peers: Peers, query: queries.LogPage, limit: int) -> AsyncIterator[Lines]:
    """The lines there are now, `limit` at most, all for 0; newest first when the query says so."""
    left = limit
    while True:
        size = min(left, PAGE) if limit else PAGE
        page = await peers.log_page(query, limit=size)
        yield page.lines
        left -= len(page.lines)
        if not page.more or (limit and left <= 0):
            return
        query = msgspec.structs.replace(query, after_id=page.cursor)


class Follower:
    """One reader of one task's log."""

    def __init__(
        self,
        catalogue: Catalogue,
        peers: Peers,
        journal: Log,
        query: queries.LogPage,
        *,
        is_over: Callable[[State], bool],
        recheck: Callable[[], object],
    ) -> None:
        """`is_over` says whether the task writes nothing more; `recheck` raises when reading must end."""
        self._catalogue = catalogue
        self._peers = peers
        self._journal = journal
        self._query = query
        self._search = patterns.search(query.regex) if query.regex else None
        self._is_over = is_over
        self._recheck = recheck
        self._offsets: dict[tuple[str, str, str], int] = {}
        self._through = 0

    async def lines(self) -> AsyncIterator[Lines]:
        """Every line once, in order, until the task is over and its log complete."""
        async for lines in self._stored():
            yield lines
        over = asyncio.create_task(self._catalogue.until(self._is_over))
        try:
            if not self._is_over(self._catalogue.state):
                async for lines in self._live(over):
                    yield lines
            async for lines in self._rest():
                yield lines
        except (*AWAY, Broken) as error:
            raise unavailable(f"the log cannot be read just now: {error!r}; try again") from error
        finally:
            over.cancel()

    async def _stored(self) -> AsyncIterator[Lines]:
        query = self._query
        while True:
            page = await self._peers.log_page(query, limit=PAGE)
            yield page.lines
            if not page.more:
                self._through = page.through
                return
            query = msgspec.structs.replace(query, after_id=page.cursor)

    async def _live(self, over: asyncio.Task[None]) -> AsyncIterator[Lines]:
        """Lines as they come, until `over` is done."""
        subject = subjects.logs(self._query.task_id)
        async with self._journal.read(subjects.LOGS, after=self._through, subjects=[subject]) as feed:
            coming = asyncio.create_task(feed.batch())
            try:
                while not over.done():
                    waited = {coming, over}
                    await asyncio.wait(waited, timeout=RECHECK_S, return_when=asyncio.FIRST_COMPLETED)
                    self._recheck()
                    if coming.done():
                        yield self._taken(coming.result().messages)
                        coming = asyncio.create_task(feed.batch())
            finally:
                coming.cancel()
                await asyncio.wait([coming])

    async def _rest(self) -> AsyncIterator[Lines]:
        """What is left in LOGS when the task is over: a fresh read knows when it has caught up."""
        subject = subjects.logs(self._query.task_id)
        async with self._journal.read(subjects.LOGS, after=self._through, subjects=[subject]) as feed:
            while True:
                batch = await feed.batch()
                yield self._taken(batch.messages)
                if batch.caught_up:
                    return

    def _taken(self, messages: Sequence[Stored]) -> list[Line]:
        found = []
        for message in messages:
            self._through = message.position
            batch = _decode(message.body)
            place = (batch.allocation_id, batch.worker_id, batch.source)
            # A worker may ship a batch again after an unknown outcome.
            if batch.offset < 0 or batch.offset > self._offsets.get(place, -1):
                self._offsets[place] = max(batch.offset, self._offsets.get(place, -1))
                found += [line for line in _lines(batch, message.position) if self._wants(line)]
        return found

    def _wants(self, line: Line) -> bool:
        return _wanted(self._query, line) and (
            self._search is None or self._search(line.text.encode()) is not None
        )


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


def _wanted(query: queries.LogPage, line: Line) -> bool:
    """Whether a line passes the filters, as the metrics service applies them to stored lines."""
    lists = (
        (query.allocation_ids, line.allocation_id),
        (query.worker_ids, line.worker_id),
        (query.ranks, -1 if line.rank is None else line.rank),
        (query.levels, line.level),
        (query.stdtypes, line.stdtype),
        (query.sources, line.source),
    )
    return (
        line.id > query.after_id
        and all(not wanted or value in wanted for wanted, value in lists)
        and (query.before_at is None or line.at <= query.before_at)
        and (query.after_at is None or line.at > query.after_at)
        and (bool(query.regex) or query.text in line.text)
    )
