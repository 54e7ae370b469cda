"""Ships a run's output from its spool to LOGS."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

import msgspec
import structlog

from det_contracts import subjects
from det_contracts.reports import LogBatch, LogLine, log_id
from services.kit.log import Draft, Log, NeverStored, NotConfirmed
from worker.output_spool import SpoolReader

QUICK_S, SLOW_S = 0.02, 0.25
"""Delay before the next look: after new output, and after a while without any, in seconds."""
MAX_READ_FAILURES = 40
"""How often reading the rest of an ended run's output is retried on a failing disk."""
AGENT, SETUP = "agent", "setup"
"""Sources of the worker's own lines about a run: from its start on, and before."""

log = structlog.get_logger()


class Shipper:
    """Ships the output of one allocation in order, retrying each batch until it is stored."""

    def __init__(self, journal: Log, task_id: str, allocation_id: str, worker_id: str) -> None:
        self._journal = journal
        self._task_id = task_id
        self._allocation_id = allocation_id
        self._worker_id = worker_id
        self.on_first_stored: Callable[[], None] | None = None
        """Called once, when the run's first own lines are stored."""

    async def ship(self, reader: SpoolReader, ended: asyncio.Event) -> None:
        """Ship until `ended` is set and nothing is left, or what is left cannot be read."""
        pause, failures, last_end = QUICK_S, 0, -1
        while True:
            # Before the spool is looked at: what the run writes between the look and its end would otherwise
            # be left behind.
            is_last_read = ended.is_set()
            try:
                end = reader.end()
                # To read takes a thread, which costs more than all else while a run prints nothing.
                shipped = (end != last_end or is_last_read) and await self._ship_next(reader)
                last_end = last_end if shipped else end
            except OSError as error:
                log.warning("output.unread", allocation=self._allocation_id, error=str(error))
                failures += 1
                if is_last_read and failures > MAX_READ_FAILURES:
                    await self.add_worker_lines(1, "ERROR", f"the rest of the output cannot be read: {error}")
                    return
                await asyncio.sleep(SLOW_S)
                continue
            failures = 0
            if shipped:
                pause = QUICK_S
            elif is_last_read:
                return
            else:
                pause = min(pause * 1.5, SLOW_S)
                await _wait_for_event(ended, pause)

    async def _ship_next(self, reader: SpoolReader) -> bool:
        """Ship the next batch; returns False if there is none.

        Raises `OSError`, in which case nothing is lost.
        """
        batch = await asyncio.to_thread(reader.read)
        if batch is None:
            return False
        await self._store("task", batch.offset, batch.lines)
        self._notify_first_stored()
        # Only now: a worker that is killed before ships the same batch again, under the same id.
        await asyncio.to_thread(reader.acknowledge, batch)
        return True

    def _notify_first_stored(self) -> None:
        if self.on_first_stored is not None:
            self.on_first_stored()
            self.on_first_stored = None

    async def add_worker_lines(self, offset: int, level: str, *texts: str, source: str = AGENT) -> None:
        """Add lines of the worker's own. `offset` must grow from 0 within a source; others are dropped."""
        now = time.time()
        await self._store(source, offset, [LogLine(now, "stdout", level, None, text) for text in texts])

    async def _store(self, source: str, offset: int, lines: Sequence[LogLine]) -> None:
        if not lines:
            return
        batch = LogBatch(
            task_id=self._task_id,
            allocation_id=self._allocation_id,
            worker_id=self._worker_id,
            source=source,
            offset=offset,
            lines=list(lines),
        )
        # Made of where the lines are, so that the broker and the metrics service recognise a repeat.
        id = log_id(self._allocation_id, self._worker_id, source, offset)
        draft = Draft(subjects.lines_of_worker(self._worker_id), msgspec.json.encode(batch), id)
        while True:
            try:
                await self._journal.append(draft)
                return
            except NeverStored as error:
                log.error("logs.dropped", allocation=self._allocation_id, lines=len(lines), error=str(error))
                return
            except NotConfirmed as error:
                log.warning("logs.kept_back", allocation=self._allocation_id, error=str(error))


async def _wait_for_event(event: asyncio.Event, seconds: float) -> None:
    if event.is_set():
        await asyncio.sleep(QUICK_S)
        return
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
