"""Determines which curves change as reports arrive, while any page shows curves."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable

import structlog

from det_contracts import subjects
from services.catalogue.domain import State
from services.kit.cancellation import cancel_in_background
from services.kit.jetstream_feed import READ_ERRORS
from services.kit.log import Log
from services.kit.roots import get_loaded
from services.live.topics import SERIES

REPEAT_S = 1.0
"""Reports are announced twice: at once, and when the metrics service has certainly stored them."""
RETRY_S = 1.0
log = structlog.get_logger()


class Curves:
    """Reads REPORTS and announces the topics of the curves that changed."""

    def __init__(
        self,
        journal: Log,
        state: Callable[[], State],
        notify: Callable[[Iterable[str]], None],
        on_missed: Callable[[], None],
    ) -> None:
        """`on_missed` is called when reading has begun again and reports may have been missed before."""
        self._journal = journal
        self._state = state
        self._notify = notify
        self._on_missed = on_missed
        self._should_run = False
        self._has_begun = asyncio.Event()
        self._may_have_missed = False
        self._task: asyncio.Task[None] | None = None
        self._repeat_topics: dict[str, None] = {}

    @property
    def running(self) -> bool:
        """Whether reports are being read."""
        return self._task is not None and not self._task.done()

    def follow(self, should_run: bool) -> None:
        """Start or stop reading."""
        self._should_run = should_run
        if should_run and not self.running:
            self._task = asyncio.create_task(self._read_forever())
            self._task.add_done_callback(self._ended)
        elif not should_run and self._task is not None:
            cancel_in_background(self._task)

    async def wait_until_reading(self) -> None:
        """Wait until no later report is missed, or until reading has failed for a while.

        What a page asks for from then on has all reports before, and it is notified of those behind.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(RETRY_S):
                await self._has_begun.wait()

    def _ended(self, work: asyncio.Task[None]) -> None:
        """However reading ended, restart it soon if pages still show curves."""
        # Not for a task that was replaced: a page that closes and another that opens end one and start the
        # next.
        if self._should_run and work is self._task:
            asyncio.get_running_loop().call_later(RETRY_S, self._restart)

    def _restart(self) -> None:
        self._may_have_missed = True
        self.follow(self._should_run)

    async def _read_forever(self) -> None:
        while True:
            try:
                await self._read()
            except READ_ERRORS as error:
                log.info("live.reports_away", error=repr(error))
            except Exception as error:
                log.error("live.reports_failed", exc_info=error)
            self._may_have_missed = True
            await asyncio.sleep(RETRY_S)

    async def _read(self) -> None:
        # From the end: pages ask for everything before it once reading has begun.
        _, last = await self._journal.bounds(subjects.REPORTS)
        async with self._journal.read(subjects.REPORTS, after=last) as feed:
            self._has_begun.set()
            try:
                if self._may_have_missed:
                    self._may_have_missed = False
                    self._on_missed()
                while True:
                    batch = await feed.batch()
                    self._notify_subjects(dict.fromkeys(message.subject for message in batch.messages))
            finally:
                self._has_begun.clear()

    def _notify_subjects(self, changed_subjects: Iterable[str]) -> None:
        topics: dict[str, None] = {}
        for subject in changed_subjects:
            id = subject.split(".")[1]
            # What is away is over: a script that goes on reporting must not have it loaded again and again.
            trial = get_loaded(self._state().trials, int(id)) if id.isdecimal() else None
            if trial is not None:
                trial_topics = f"trial.{trial.id}{SERIES}", f"experiment.{trial.experiment_id}{SERIES}"
                topics |= dict.fromkeys(trial_topics)
        if topics:
            self._notify(topics)
            self._schedule_repeat(topics)

    def _schedule_repeat(self, topics: dict[str, None]) -> None:
        if not self._repeat_topics:
            asyncio.get_running_loop().call_later(REPEAT_S, self._notify_repeat)
        self._repeat_topics |= topics

    def _notify_repeat(self) -> None:
        topics, self._repeat_topics = self._repeat_topics, {}
        self._notify(topics)
