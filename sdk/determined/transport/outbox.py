"""Reports on their way out: gathered, sent together, kept until they are stored."""

import asyncio
import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable

import msgspec

from det_contracts import subjects
from det_contracts.reports import ReportBatch, report_id
from determined.transport.bus_thread import BusThread, TooLarge
from determined.transport.columns import Timed, to_series
from determined.transport.protocol import MetricReport

logger = logging.getLogger("determined.transport")

GATHER_S = 0.05
"""How long reports are gathered before they go out together."""
BATCH_REPORTS = 500
BATCH_VALUES = 20_000
"""Values that go into one message; the broker takes 8 MB."""
PATIENCE_S = 10.0
"""How long somebody waits for reports to be stored before it is told."""


class Unreadable(Exception):
    """Reports that have no form in which they could travel."""


class Outbox:
    """Takes reports over from the script's threads; the bus's thread sends them, in order, each once."""

    def __init__(self, thread: BusThread, head: ReportBatch, refuse: Callable[[str], None]) -> None:
        """`head` has all that is the same in every batch; `refuse` is told of what can never be sent."""
        self._thread = thread
        self._head = head
        self._refuse = refuse
        self._waiting: deque[Timed] = deque()
        self._under_way: deque[list[Timed]] = deque()
        """Batches that were taken out of `_waiting` and are not stored yet."""
        self._numbered = 0
        self._news = asyncio.Event()
        self._awake = False
        """The sender looks by itself whether more has come."""
        self._made = self._settled = 0
        self._wanted = 0
        """So many of those made are waited for."""
        self._lock = threading.Condition()

    def put(self, report: MetricReport) -> None:
        """Queue a report; it is sent with its neighbours."""
        self._waiting.append((time.time(), report))
        self._made += 1
        if not self._awake:
            self._awake = True
            self._thread.wake(self._news)

    def wait(self) -> None:
        """Block until every report so far is stored; RuntimeError when nobody is left to send them."""
        upto = self._made
        if self._settled >= upto:
            return
        self._wanted = max(self._wanted, upto)
        self._thread.wake(self._news)
        with self._lock:
            while self._settled < upto:
                self._thread.check()
                if not self._lock.wait(PATIENCE_S):
                    logger.warning("waiting for the cluster to store %d reports", upto - self._settled)

    async def send_for_ever(self) -> None:
        """Send what comes. Begun again after a failure, it goes on with what was under way."""
        while True:
            await self._gather()
            # Not what comes meanwhile: a script that reports all the time would make of each few a message.
            left = len(self._waiting)
            while self._under_way or left > 0:
                if not self._under_way:
                    self._under_way.append(self._gathered())
                    left -= len(self._under_way[0])
                await self._send(self._under_way[0])

    async def _gather(self) -> None:
        """Return when a report has come and its neighbours, or somebody waits for it, or there are many."""
        self._news.clear()
        if not (self._under_way or self._waiting):
            self._awake = False
            # One that came just before has woken nobody.
            if not self._waiting:
                await self._news.wait()
                self._news.clear()
        if self._settled >= self._wanted and len(self._waiting) < BATCH_REPORTS:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._news.wait(), GATHER_S)

    def _gathered(self) -> list[Timed]:
        return [self._waiting.popleft() for _ in range(self._fitting())]

    def _fitting(self) -> int:
        """How many of the waiting reports make the next message; at least one."""
        values = 0
        waiting = min(len(self._waiting), BATCH_REPORTS)
        for count in range(waiting):
            # By place: the script goes on reporting, and a deque that grows cannot be iterated over.
            report = self._waiting[count][1]
            values += len(report.metrics) + sum(map(len, report.batch_metrics or ()))
            if values > BATCH_VALUES and count:
                return count
        return waiting

    async def _send(self, reports: list[Timed]) -> None:
        try:
            await self._store(reports)
        except (TooLarge, Unreadable) as error:
            self._under_way.popleft()
            if len(reports) > 1:
                self._under_way.extendleft([one] for one in reversed(reports))
                return
            self._refuse(_told(reports[0][1], error))
        else:
            self._numbered += 1
            self._under_way.popleft()
        with self._lock:
            self._settled += len(reports)
            self._lock.notify_all()

    async def _store(self, reports: list[Timed]) -> None:
        # Sent again after a failure, a batch has the same number, by which a repeat is known.
        number = self._numbered + 1
        try:
            batch = msgspec.structs.replace(self._head, number=number, series=to_series(reports))
            body = msgspec.json.encode(batch)
        except Exception as error:
            raise Unreadable(f"{type(error).__name__}: {error}") from error
        id = report_id(batch.trial_id, batch.run, number, batch.sender)
        await self._thread.store(subjects.reports(batch.trial_id), body, id)


def _told(report: MetricReport, error: Exception) -> str:
    wrong = "are too large to be sent" if isinstance(error, TooLarge) else "cannot be sent"
    return f"{report.group} metrics at {report.steps_completed} steps {wrong}: {error}"
