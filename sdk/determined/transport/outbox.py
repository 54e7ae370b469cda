"""Queue of outgoing reports and facts, sent in order and kept until stored or permanently refused.

Reports are batched. A fact is sent immediately, after the reports that were made before it.
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
from determined.transport.protocol import MetricReport, NeverStored
from determined.transport.refusals import Refused, TooLarge

logger = logging.getLogger("determined.transport")

GATHER_S = 0.05
"""How long to collect reports before sending them together."""
BATCH_REPORTS = 500
BATCH_VALUES = 20_000
"""Maximum number of values in a message. The broker accepts 8 MB."""
PATIENCE_S = 10.0
"""How long to wait for reports to be stored before logging that."""


class Unreadable(Exception):
    """Reports that cannot be encoded for sending."""


class Fact:
    """A message other than a report. Without a subject it is a marker that can be waited for."""

    def __init__(self, what: str = "", subject: str = "", body: bytes = b"", id: str = "") -> None:
        self.what = what
        """Description for log messages, such as `checkpoint UUID`."""
        self.subject, self.body, self.id = subject, body, id
        self.settled: Future[None] = Future()
        """Done once this and everything before it is stored; `NeverStored` if it is permanently refused."""
        self.left = False
        """Set when the caller has stopped waiting, so that a refusal must be reported another way."""


Entry = Timed | Fact


class Outbox:
    """Accepts reports from the script's threads. The bus thread sends them in order, each exactly once."""

    def __init__(self, thread: BusThread, head: ReportBatch, refuse: Callable[[str], None]) -> None:
        """`head` holds the fields common to all batches. `refuse` is called with what can never be sent."""
        self._thread = thread
        self._head = head
        self._refuse = refuse
        self._waiting: deque[Entry] = deque()
        self._under_way: deque[list[Entry]] = deque()
        """Messages taken out of `_waiting` that are not settled yet."""
        self._numbered = 0
        self._news = asyncio.Event()
        self._awake = False
        """Whether the sender is active, and will check for new entries itself."""
        self._hurried = False
        """Whether a fact is waiting."""
        self._settled = 0
        """Number of messages stored or refused so far."""

    def put(self, report: MetricReport) -> None:
        """Queue a report; it is sent in a batch."""
        # Appending to a deque is atomic, so that the training loop takes no lock.
        self._waiting.append((time.time(), report))
        # Waking the loop writes to a socket, which costs more than the rest of this call.
        if not self._awake:
            self._awake = True
            try:
                self._thread.soon(self._news.set)
            # Otherwise no later report would wake the sender.
            except BaseException:
                self._awake = False
                raise

    def put_fact(self, fact: Fact) -> None:
        """Queue a fact. Raises RuntimeError if the sending thread is gone."""
        self._thread.check()
        self._waiting.append(fact)
        self._hurried = True
        self._thread.soon(self._news.set)

    def wait(self, stalled_s: float = math.inf) -> bool:
        """Block until everything queued so far is settled; otherwise like `wait_for`."""
        mark = self.mark()
        return mark is None or self.wait_for(mark, stalled_s)

    def mark(self) -> Fact | None:
        """Return what is settled once everything queued so far is; None if it is already.

        Raises RuntimeError if the sending thread is gone.
        """
        # Check in this order: entries move from the first queue to the second.
        if not (self._waiting or self._under_way):
            return None
        # Through the same queue as the reports, so that it is settled after all of them.
        mark = Fact()
        self.put_fact(mark)
        return mark

    def wait_for(self, fact: Fact, stalled_s: float = math.inf) -> bool:
        """Block until a fact and everything before it is settled.

        Returns False after `stalled_s` without progress.

        Raises RuntimeError if the fact is permanently refused or the sending thread is gone.
        """
        settled, since = self._settled, time.monotonic()
        while True:
            self._thread.check()
            if concurrent.futures.wait([fact.settled], min(PATIENCE_S, stalled_s)).done:
                fact.settled.result()
                return True
            # As long as messages are stored, waiting goes on; only a standstill counts.
            if self._settled != settled:
                settled, since = self._settled, time.monotonic()
            elif time.monotonic() - since >= stalled_s:
                return False
            left = self.unsettled() or "what was reported"
            logger.warning("waiting for the cluster to store %s%s", left, self._thread.trouble)

    def unsettled(self) -> str:
        """Describe what is neither stored nor refused; empty if there is nothing."""
        under_way = [entry for message in tuple(self._under_way) for entry in tuple(message)]
        return described([*under_way, *tuple(self._waiting)])

    # Everything below runs in the thread's event loop.

    async def send_for_ever(self) -> None:
        """Send everything queued.

        When restarted after a failure, it continues with the unsettled messages.
        """
        while True:
            await self._gather()
            # Cleared before entries are taken: a fact that is queued from here on hurries the next round.
            self._hurried = False
            # Exclude entries that arrive meanwhile: a script that reports constantly would cause many small
            # messages.
            left = len(self._waiting)
            while self._under_way or left > 0:
                if not self._under_way:
                    left -= self._take_out()
                await self._send(self._under_way[0])

    async def _gather(self) -> None:
        """Wait until reports should be sent: after the batching delay, earlier if many or with a fact."""
        self._news.clear()
        if not (self._under_way or self._waiting):
            self._awake = False
            # A report queued just before `_awake` was cleared has not set the event.
            if not self._waiting:
                await self._news.wait()
                self._news.clear()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._enough(), GATHER_S)

    async def _enough(self) -> None:
        """Wait until there is a fact or a whole message."""
        while not self._hurried and len(self._waiting) < BATCH_REPORTS:
            # The event may still come of a fact that has been sent.
            self._news.clear()
            await self._news.wait()

    def _take_out(self) -> int:
        """Move the entries of the next message to `_under_way`. Returns their number."""
        count = self._fitting()
        message: list[Entry] = []
        # Before its entries move: `wait`, in another thread, must not find both queues empty in between.
        self._under_way.append(message)
        message.extend(self._waiting.popleft() for _ in range(count))
        return count

    def _fitting(self) -> int:
        """Return how many entries form the next message: one fact, or the reports before the next fact."""
        values = 0
        waiting = min(len(self._waiting), BATCH_REPORTS)
        for count in range(waiting):
            # Access by index: the script keeps appending, and a growing deque cannot be iterated.
            entry = self._waiting[count]
            if isinstance(entry, Fact):
                return count or 1
            report = entry[1]
            values += len(report.metrics) + sum(map(len, report.batch_metrics or ()))
            # A report that is too large alone still forms a message. The broker decides about it.
            if values > BATCH_VALUES and count:
                return count
        return waiting

    async def _send(self, message: list[Entry]) -> None:
        fact = message[0]
        if isinstance(fact, Fact):
            await self._send_fact(fact)
        elif not await self._send_reports([entry for entry in message if not isinstance(entry, Fact)]):
            for report in reversed(message[1:]):
                # Each alone, in order: one report that cannot be encoded or is too large must not take the
                # others with it.
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
            message = self._refusal_text(fact.what, "is", error)
            # Before `left` is read: a caller that stops waiting sets `left` and then looks at `settled` once
            # more, so at least one of the two reports the refusal.
            fact.settled.set_exception(NeverStored(message))
            if fact.left:
                self._refuse(message)
        else:
            fact.settled.set_result(None)

    async def _send_reports(self, reports: list[Timed]) -> bool:
        """Return whether the reports are settled. If not, each may be sent alone."""
        try:
            await self._store(reports)
        except (Refused, Unreadable) as error:
            if len(reports) > 1 and isinstance(error, TooLarge | Unreadable):
                return False
            self._refuse(self._refusal_text(described(reports), "are", error))
        else:
            self._numbered += 1
        return True

    async def _store(self, reports: list[Timed]) -> None:
        # A batch that is sent again has the same number, so that duplicates are detected.
        number = self._numbered + 1
        try:
            batch = msgspec.structs.replace(self._head, number=number, series=to_series(reports))
            body = msgspec.json.encode(batch)
        except Exception as error:
            raise Unreadable(f"{type(error).__name__}: {error}") from error
        id = report_id(batch.trial_id, batch.run, number, batch.sender)
        await self._thread.store(subjects.reports(batch.trial_id), body, id)

    def _refusal_text(self, what: str, be: str, error: Exception) -> str:
        how = f"{be} permanently refused by the cluster"
        if isinstance(error, TooLarge):
            how = f"{be} too large to be sent"
        elif isinstance(error, Unreadable):
            how = "cannot be sent"
        return f"trial {self._head.trial_id}, run {self._head.run}: {what} {how}: {error}"


def described(entries: list[Entry] | list[Timed]) -> str:
    """Describe entries for the user, for example `checkpoint UUID`."""
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
