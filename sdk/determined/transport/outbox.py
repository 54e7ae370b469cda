"""Reports and facts on their way out, in order: kept until they are stored, or refused for good.

Reports are gathered and sent together. A fact goes out at once, behind the reports that were made before it.
"""

import asyncio
import concurrent.futures
import contextlib
import logging
import math
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

import msgspec

from det_contracts import subjects
from det_contracts.reports import ReportBatch, report_id
from determined.transport.bus_thread import BusThread
from determined.transport.columns import Timed, to_series
from determined.transport.protocol import MetricReport
from determined.transport.refusals import Refused, TooLarge

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


class Fact:
    """One message that is not a report; without a subject a mark, which is there to be waited for."""

    def __init__(self, what: str = "", subject: str = "", body: bytes = b"", id: str = "") -> None:
        self.what = what
        """In the words of the script, such as `checkpoint UUID`."""
        self.subject, self.body, self.id = subject, body, id
        self.settled: Future[None] = Future()
        """Done when it and all before it are stored; RuntimeError when it is refused for good."""
        self.left = False
        """Nobody waits for it any more: that it is refused is told otherwise."""


Entry = Timed | Fact


class Outbox:
    """Takes reports over from the script's threads; the bus's thread sends them, in order, each once."""

    def __init__(self, thread: BusThread, head: ReportBatch, refuse: Callable[[str], None]) -> None:
        """`head` has all that is the same in every batch; `refuse` is told of what can never be sent."""
        self._thread = thread
        self._head = head
        self._refuse = refuse
        self._waiting: deque[Entry] = deque()
        self._under_way: deque[list[Entry]] = deque()
        """Messages that were taken out of `_waiting` and are not settled yet."""
        self._numbered = 0
        self._news = asyncio.Event()
        self._awake = False
        """The sender looks by itself whether more has come."""
        self._hurried = False
        """A fact is among those that wait."""
        self._settled = 0
        """Messages stored or refused so far."""

    def put(self, report: MetricReport) -> None:
        """Queue a report; it is sent with its neighbours."""
        self._waiting.append((time.time(), report))
        if not self._awake:
            self._awake = True
            try:
                self._thread.soon(self._news.set)
            except BaseException:
                self._awake = False
                raise

    def put_fact(self, fact: Fact) -> None:
        """Queue a fact; RuntimeError when nobody is left to send it."""
        self._thread.check()
        self._waiting.append(fact)
        self._hurried = True
        self._thread.soon(self._news.set)

    def wait(self, stalled_s: float = math.inf) -> bool:
        """Block until all so far is settled; otherwise as `wait_for`."""
        # In this order: what is taken out of the first is in the second by then.
        if not (self._waiting or self._under_way):
            return True
        mark = Fact()
        self.put_fact(mark)
        return self.wait_for(mark, stalled_s)

    def wait_for(self, fact: Fact, stalled_s: float = math.inf) -> bool:
        """Block until a fact and all before it are settled. False after `stalled_s` in which nothing was.

        RuntimeError when the fact is refused for good, and when nobody is left to send it.
        """
        settled, since = self._settled, time.monotonic()
        while True:
            self._thread.check()
            if concurrent.futures.wait([fact.settled], min(PATIENCE_S, stalled_s)).done:
                fact.settled.result()
                return True
            if self._settled != settled:
                settled, since = self._settled, time.monotonic()
            elif time.monotonic() - since >= stalled_s:
                return False
            left = self.unsettled() or "what was reported"
            logger.warning("waiting for the cluster to store %s%s", left, self._thread.trouble)

    def unsettled(self) -> str:
        """What is neither stored nor refused, in words; empty when there is nothing."""
        under_way = [entry for message in tuple(self._under_way) for entry in tuple(message)]
        return described([*under_way, *tuple(self._waiting)])

    # Whatever follows runs in the loop of the thread.

    async def send_for_ever(self) -> None:
        """Send what comes. Begun again after a failure, it goes on with what was under way."""
        while True:
            await self._gather()
            self._hurried = False
            # Not what comes meanwhile: a script that reports all the time would make of each few a message.
            left = len(self._waiting)
            while self._under_way or left > 0:
                if not self._under_way:
                    left -= self._take_out()
                await self._send(self._under_way[0])

    async def _gather(self) -> None:
        """Return when a report has come and its neighbours, or a fact, or there are many."""
        self._news.clear()
        if not (self._under_way or self._waiting):
            self._awake = False
            # One that came just before has woken nobody.
            if not self._waiting:
                await self._news.wait()
                self._news.clear()
        if not self._hurried and len(self._waiting) < BATCH_REPORTS:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._news.wait(), GATHER_S)

    def _take_out(self) -> int:
        """Move what makes the next message to those under way; returns how many entries that are."""
        count = self._fitting()
        message: list[Entry] = []
        self._under_way.append(message)
        message.extend(self._waiting.popleft() for _ in range(count))
        return count

    def _fitting(self) -> int:
        """How many of those waiting make the next message: one fact, or the reports before the next one."""
        values = 0
        waiting = min(len(self._waiting), BATCH_REPORTS)
        for count in range(waiting):
            # By place: the script goes on reporting, and a deque that grows cannot be iterated over.
            entry = self._waiting[count]
            if isinstance(entry, Fact):
                return count or 1
            report = entry[1]
            values += len(report.metrics) + sum(map(len, report.batch_metrics or ()))
            if values > BATCH_VALUES and count:
                return count
        return waiting

    async def _send(self, message: list[Entry]) -> None:
        fact = message[0]
        if isinstance(fact, Fact):
            await self._send_fact(fact)
        elif not await self._send_reports([entry for entry in message if not isinstance(entry, Fact)]):
            for report in reversed(message[1:]):
                self._under_way.insert(1, [report])
            del message[1:]
            return
        self._under_way.popleft()
        self._settled += 1

    async def _send_fact(self, fact: Fact) -> None:
        try:
            if fact.subject:
                await self._thread.store(fact.subject, fact.body, fact.id)
        except Refused as error:
            message = self._told(fact.what, "is", error)
            fact.settled.set_exception(RuntimeError(message))
            if fact.left:
                self._refuse(message)
        else:
            fact.settled.set_result(None)

    async def _send_reports(self, reports: list[Timed]) -> bool:
        """Whether they are settled; if not, each may be sent alone."""
        try:
            await self._store(reports)
        except (Refused, Unreadable) as error:
            if len(reports) > 1 and isinstance(error, TooLarge | Unreadable):
                return False
            self._refuse(self._told(described(reports), "are", error))
        else:
            self._numbered += 1
        return True

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

    def _told(self, what: str, be: str, error: Exception) -> str:
        how = f"{be} refused by the cluster for good"
        if isinstance(error, TooLarge):
            how = f"{be} too large to be sent"
        elif isinstance(error, Unreadable):
            how = "cannot be sent"
        return f"trial {self._head.trial_id}, run {self._head.run}: {what} {how}: {error}"


def described(entries: list[Entry] | list[Timed]) -> str:
    """What these are, in the words of the script: such as `checkpoint UUID`."""
    reports = [entry[1] for entry in entries if not isinstance(entry, Fact)]
    parts = [entry.what for entry in entries if isinstance(entry, Fact) and entry.what]
    if reports:
        first, last = reports[0], reports[-1]
        steps = f"{first.group} metrics at {first.steps_completed} steps"
        if len(reports) > 1:
            to = f"{last.group} metrics at {last.steps_completed} steps"
            steps = f"{len(reports)} reports, from {steps} to {to}"
        parts.insert(0, steps)
    return ", ".join(parts)
