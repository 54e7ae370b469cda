"""Determines which curves change as reports arrive, while any page shows curves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import structlog

from det_contracts import subjects
from services.catalogue.domain import State
from services.kit.jetstream_feed import CANNOT_READ
from services.kit.log import Log
from services.kit.task_ending import end_soon
from services.live.topics import SERIES

AGAIN_S = 1.0
"""Reports are announced twice: at once, and when the metrics service has certainly stored them."""
RETRY_S = 1.0
log = structlog.get_logger()


class Curves:
    """Reads REPORTS and announces the topics of the curves that changed."""

    def __init__(
        self,
        journal: Log,
        state: Callable[[], State],
        tell: Callable[[Iterable[str]], None],
        missed: Callable[[], None],
    ) -> None:
        """`missed` is called when reports may have been missed."""
        self._journal = journal
        self._state = state
        self._tell = tell
        self._missed = missed
        self._wanted = False
        self._work: asyncio.Task[None] | None = None
        self._again: dict[str, None] = {}

    @property
    def running(self) -> bool:
        """Whether reports are being read."""
        return self._work is not None and not self._work.done()

    def follow(self, wanted: bool) -> None:
        """Start or stop reading."""
        self._wanted = wanted
        if wanted and not self.running:
            self._work = asyncio.create_task(self._read_for_ever())
            self._work.add_done_callback(self._ended)
        elif not wanted and self._work is not None:
            end_soon(self._work)

    def _ended(self, work: asyncio.Task[None]) -> None:
        """However reading ended, restart it soon if pages still show curves."""
        if self._wanted and work is self._work:
            asyncio.get_running_loop().call_later(RETRY_S, self._begin_again)

    def _begin_again(self) -> None:
        self.follow(self._wanted)
        self._missed()

    async def _read_for_ever(self) -> None:
        while True:
            try:
                await self._read()
            except CANNOT_READ as error:
                log.info("live.reports_away", error=repr(error))
            except Exception as error:
                log.error("live.reports_failed", exc_info=error)
            await asyncio.sleep(RETRY_S)
            self._missed()

    async def _read(self) -> None:
        _, last = await self._journal.bounds(subjects.REPORTS)
        async with self._journal.read(subjects.REPORTS, after=last) as feed:
            while True:
                batch = await feed.batch()
                self._moved(dict.fromkeys(message.subject for message in batch.messages))

    def _moved(self, where: Iterable[str]) -> None:
        topics: dict[str, None] = {}
        for subject in where:
            id = subject.split(".")[1]
            trial = self._state().trials.get(int(id)) if id.isdecimal() else None
            if trial is not None:
                own = f"trial.{trial.id}{SERIES}", f"experiment.{trial.experiment_id}{SERIES}"
                topics |= dict.fromkeys(own)
        if topics:
            self._tell(topics)
            self._tell_again(topics)

    def _tell_again(self, topics: dict[str, None]) -> None:
        if not self._again:
            asyncio.get_running_loop().call_later(AGAIN_S, self._told_again)
        self._again |= topics

    def _told_again(self) -> None:
        topics, self._again = self._again, {}
        self._tell(topics)
