"""The transport of a script that runs on a cluster: reports out, operations and preemption in.

Reports are kept in memory and sent by a background thread; what the searcher and the scheduler decide about
the trial is asked for by requests that wait until there is something to say.
"""

import asyncio
import atexit
import json
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import msgspec

from det_contracts import codec, news, subjects
from det_contracts.commands import Answer
from det_contracts.events import trial
from det_contracts.reports import ReportBatch
from determined._info import ClusterInfo, info_directory
from determined.transport.budget import Budget
from determined.transport.bus_thread import HURRY_S, BusThread
from determined.transport.leaving import exit_patience, lost
from determined.transport.newest import Newest
from determined.transport.outbox import Fact, Outbox
from determined.transport.protocol import MetricReport, SearcherOp, StoredCheckpoint
from determined.transport.refusals import Refused
from determined.transport.repeats import joined
from determined.transport.waiting import TOLD_EVERY_S, Patience, wait_for

logger = logging.getLogger("determined.transport")

PROGRESS_EVERY_S = 1.0
PROGRESS_AT_ONCE, PROGRESS_PER_S = 1000, 20.0
"""Reports of progress that a custom search hears one by one: so many, and so many more every second."""
FIRST_ANSWER_S = 5.0
MARGIN_S = 5.0
"""For an answer that was given at the last moment to arrive."""
AGAIN_S = 0.5
"""At least so long lies between two questions of which nothing came."""
FACT_S = 10.0
"""How long a call waits, once in an outage, until its fact is stored; then it is sent later."""
ANSWER_S = 10.0
QUOTA_S = 3.0
"""Likewise for an answer that the script can do without."""


def connect(info: ClusterInfo) -> "BusTransport":
    """The transport of this allocation; reads the broker's address from `bus.json` in the info directory."""
    settings = json.loads((info_directory() / "bus.json").read_text())
    inbox, ca = settings.get("inbox_prefix", "_INBOX"), settings.get("ca")
    thread = BusThread(settings["urls"], settings.get("credentials"), inbox, ca)
    return BusTransport(info, thread)


class BusTransport:
    """Implements `determined.transport.protocol.Transport` over NATS."""

    def __init__(self, info: ClusterInfo, thread: BusThread) -> None:
        config = info.trial._config["searcher"]
        self._trial = info.trial.trial_id
        self._experiment = info.trial.experiment_id
        self._run = info.trial._trial_run_id
        self._task = info.task_id
        self._allocation = info.allocation_id
        self._smaller_is_better: bool = config.get("smaller_is_better", True)
        self._thread = thread
        self._witness = subjects.witness_of_trial(self._trial)
        """Where facts are stated; the cluster puts them into its log."""
        self._lock = threading.Condition()
        self._op: SearcherOp | None = None
        self._idled = 0
        self._known: Future[None] = Future()
        """Done when the scheduler has said for the first time whether to leave."""
        self._blocked = 0
        """Calls that wait for what is heard."""
        self._preempted = False
        self._refusals: deque[str] = deque()
        self._newest: dict[str, MetricReport] = {}
        """By group, all that was reported at the newest steps."""
        self._progressed_at = 0.0
        self._each_progress = (
            Budget(PROGRESS_AT_ONCE, PROGRESS_PER_S) if config.get("name") == "custom" else None
        )
        """A search method of the user's own hears of all, but from a script that tells it all the time."""
        self._acknowledged = False
        self._started = self._closed = False
        self._exit_patience_s = exit_patience()
        self._process = os.getpid()
        """What a process forked from this one inherits is not its own: the thread stays here."""
        head = ReportBatch(
            trial_id=self._trial,
            experiment_id=self._experiment,
            run=self._run,
            number=0,
            searcher_metric=config["metric"],
            smaller_is_better=self._smaller_is_better,
            series=[],
            # Several processes of a run may report, one after the other.
            sender=os.urandom(6).hex(),
        )
        self._outbox = Outbox(thread, head, self._refusals.append)
        self._progress = Newest(thread, self._tell, "progress")
        self._status = Newest(thread, self._tell, "the status")
        self._first_answer = Patience(FIRST_ANSWER_S)
        self._facts, self._answers = Patience(FACT_S), Patience(ANSWER_S)
        self._quotas = Patience(QUOTA_S)
        self._storage: Future[Any] | None = None
        self._best: Future[Any] | None = None
        self._best_known: float | None = None

    # -- life

    def start(self) -> None:
        """Connect in the background."""
        if self._started:
            return
        self._started, self._process = True, os.getpid()
        self._thread.start()
        self._thread.keep_going(self._outbox.send_for_ever, "sending reports")
        self._thread.keep_going(self._hear_operations, "listening to the searcher")
        self._thread.keep_going(self._hear_leave, "listening to the scheduler")
        self._thread.keep_going(self._hear_refusals, "listening to the metrics service")
        atexit.register(self._leave_at_exit)

    def close(self) -> None:
        """Flush, then leave; raises a refusal that no call has raised yet."""
        if not self._begin_to_leave():
            return
        atexit.unregister(self._leave_at_exit)
        try:
            self._outbox.wait()
        except BaseException as error:
            self._tell_lost(f"the wait for it was broken off by {error!r}")
            raise
        self._thread.stop()
        try:
            self._raise_refusal()
        finally:
            self._log_refusals()

    def _begin_to_leave(self) -> bool:
        if self._closed or not self._started or os.getpid() != self._process:
            return False
        self._closed = True
        return True

    def _leave_at_exit(self) -> None:
        """Flush what a script leaves behind that ends without `close`; what fails now can only be told."""
        if not self._begin_to_leave():
            return
        patience_s = self._exit_patience_s
        try:
            if self._outbox.wait(patience_s):
                self._thread.stop(within_s=1.0)
            else:
                self._tell_lost(f"for {patience_s:g} s nothing could be stored{self._thread.trouble}")
        except BaseException as error:
            self._tell_lost(f"the wait for it was broken off by {error!r}")
        self._log_refusals()

    def _tell_lost(self, why: str) -> None:
        if left := self._outbox.unsettled():
            logger.error("trial %s, run %s: %s", self._trial, self._run, lost(left, why))

    def _log_refusals(self) -> None:
        while self._refusals:
            logger.error("%s", self._refusals.popleft())

    # -- reports

    def report(self, report: MetricReport) -> None:
        """Queue a report; the background thread sends it with its neighbours.

        What repeats a metric of the report before is told at once, by a RuntimeError; of an earlier one the
        metrics service tells, later.
        """
        if self._refusals or os.getpid() != self._process:
            self._thread.check()
            self._raise_refusal()
        before = self._newest.get(report.group)
        if before is not None and before.steps_completed == report.steps_completed:
            self._newest[report.group] = joined(before, report)
        else:
            self._newest[report.group] = report
        self._outbox.put(report)

    def flush(self) -> None:
        """Block until every report so far is stored."""
        self._outbox.wait()
        self._raise_refusal()

    def _raise_refusal(self) -> None:
        if self._refusals:
            raise RuntimeError(self._refusals.popleft())

    # -- what is heard

    async def _hear_operations(self) -> None:
        seen: news.Operations | None = None
        while True:
            wait_s = HURRY_S if self._blocked else news.WAIT_S
            said = await self._news("searcher", news.AskOperations(self._run, seen, wait_s), wait_s)
            if said is not None:
                seen = msgspec.convert(said, news.Operations)
                self._take_operations(seen)

    def _take_operations(self, said: news.Operations) -> None:
        if said.over:
            logger.error(
                "trial %s: a newer run has started; reports of this run no longer count",
                self._trial,
            )
            return
        with self._lock:
            if said.seq and (self._op is None or said.seq > self._op.seq):
                self._op = SearcherOp(said.seq, said.length)
            self._idled = max(self._idled, said.idled)
            self._lock.notify_all()

    async def _hear_leave(self) -> None:
        seen: news.Leave | None = None
        while True:
            said = await self._news("scheduler", news.AskLeave(self._allocation, seen), news.WAIT_S)
            if said is None:
                continue
            seen = msgspec.convert(said, news.Leave)
            self._preempted = self._preempted or seen.leave
            if not self._known.done():
                self._known.set_result(None)

    async def _hear_refusals(self) -> None:
        seen: news.Refusals | None = None
        while True:
            said = await self._news("metrics", news.AskRefusals(self._run, seen), news.WAIT_S)
            if said is not None:
                seen = msgspec.convert(said, news.Refusals)
                self._refusals.extend(seen.reasons)

    async def _news(self, owner: str, ask: msgspec.Struct, wait_s: float) -> Any:
        """What an owner says that was not seen; None for nothing, so far."""
        began = time.monotonic()
        subject = subjects.asked_by_trial(self._trial, owner, "news")
        body = await self._thread.wait_for_news(
            subject,
            msgspec.json.encode(ask),
            wait_s + MARGIN_S,
            lambda: owner == "searcher" and self._blocked > 0,
        )
        answer = Answer() if body is None else msgspec.json.decode(body, type=Answer)
        if answer.problem is not None:
            logger.warning("the %s tells nothing: %s", owner, answer.problem.message)
        if answer.value is None and time.monotonic() - began < AGAIN_S:
            await asyncio.sleep(AGAIN_S)
        return answer.value

    def _wait_until(self, true: Callable[[], bool], what: str) -> None:
        with self._lock:
            self._blocked += 1
            try:
                while not true():
                    self._thread.check()
                    if not self._lock.wait(TOLD_EVERY_S):
                        logger.warning("waiting for the cluster: %s%s", what, self._thread.trouble)
            finally:
                self._blocked -= 1

    # -- searcher

    def operation(self) -> SearcherOp | None:
        """The open operation, as the searcher last said."""
        self._wait_until(lambda: self._op is not None, "the trial's next operation")
        op = self._op
        return op if op is not None and op.seq > self._idled else None

    def complete(self, seq: int, length: int, metric: object) -> None:
        """State the completion, then wait for the searcher's answer to it."""
        done = trial.OperationCompleted(
            trial_id=self._trial, run=self._run, seq=seq, length=length, metric=metric
        )
        self._outbox.wait_for(self._put(done, f"the completion of operation {seq}"))
        self._wait_until(
            lambda: self._idled >= seq or (self._op is not None and self._op.seq > seq),
            f"the searcher's answer to operation {seq}",
        )

    def progress(self, units: float) -> None:
        """Thinned out: at most one a second goes into the log. A custom search hears each."""
        now, told = time.monotonic(), trial.Progressed(self._trial, self._run, units)
        if self._each_progress is not None and self._each_progress.spend(now):
            self._progressed_at = now
            self._put(told, "the progress")
            return
        if now - self._progressed_at >= PROGRESS_EVERY_S:
            self._progressed_at = now
            self._progress.tell(told)

    # -- facts

    def checkpoint(self, stored: StoredCheckpoint) -> None:
        """State that a checkpoint is stored."""
        fact = trial.CheckpointStored(
            trial_id=self._trial,
            experiment_id=self._experiment,
            run=self._run,
            task_id=self._task,
            allocation_id=self._allocation,
            uuid=stored.uuid,
            resources=stored.resources,
            metadata=stored.metadata,
            steps_completed=int(stored.metadata["steps_completed"]),
        )
        self._state(fact, f"checkpoint {stored.uuid}")

    def preempted(self) -> bool:
        """Whether this allocation shall leave; a local answer after the first."""
        if not self._preempted and not self._known.done():
            self._first_answer.lasts(self._known)
        return self._preempted

    def acknowledge_preemption(self) -> None:
        """State that the coming exit is meant."""
        if not self._acknowledged:
            self._acknowledged = True
            fact = trial.PreemptionAcknowledged(self._trial, self._run)
            self._state(fact, "the acknowledged preemption")

    def exit_early(self, reason: str) -> None:
        """State that the script gives the trial up."""
        fact = trial.ExitedEarly(self._trial, self._run, reason)
        self._state(fact, "the early exit")

    def set_status(self, status: str) -> None:
        """Show what the script is doing."""
        self._raise_refusal()
        shown = status.replace("\0", "")[: trial.MOST_TEXT]
        self._status.tell(trial.StatusSet(self._trial, self._run, shown))

    def _state(self, event: Any, what: str) -> None:
        """Have a fact stored behind all that was reported; in an outage, later."""
        fact = self._put(event, what)
        if not self._facts.lasts(fact.settled):
            logger.warning("the cluster hears later of %s%s", what, self._thread.trouble)
            fact.left = True
            self._thread.check()
        if fact.settled.done():
            fact.settled.result()

    def _put(self, event: Any, what: str) -> Fact:
        id = _new_id()
        fact = Fact(what, self._witness, self._encoded(event, id), id)
        self._outbox.put_fact(fact)
        return fact

    async def _tell(self, event: Any) -> None:
        id = _new_id()
        await self._thread.store(self._witness, self._encoded(event, id), id)

    def _encoded(self, event: Any, id: str) -> bytes:
        return codec.encode(event, id=id, actor=f"trial:{self._trial}", at=time.time())

    # -- questions

    def best_validation(self) -> float | None:
        """The best searcher metric of the experiment so far, as far as this process knows in an outage."""
        self._raise_refusal()
        if self._best is None or self._best.done():
            self._take_best()
            self._best = self._ask(news.AskBest(self._smaller_is_better))
        if self._answers.lasts(self._best):
            self._take_best()
        else:
            logger.warning(
                "the cluster does not say what the best validation is; its last answer counts: %s%s",
                *(self._best_known, self._thread.trouble),
            )
            self._thread.check()
        return self._best_known

    def _take_best(self) -> None:
        if self._best is not None:
            value = _value(self._best)
            self._best_known = None if value is None else float(value)

    def storage_refusal(self, size_bytes: int) -> str:
        """What the registry says of another checkpoint of so many bytes."""
        if self._storage is not None and not self._storage.done():
            # Nobody has answered since the last time, and a checkpoint does not wait for that.
            return ""
        self._storage = self._ask(news.AskStorage(size_bytes), "checkpoints")
        if not self._quotas.lasts(self._storage):
            logger.warning("no service answered whether a storage quota is used up%s", self._thread.trouble)
            self._thread.check()
            return ""
        try:
            return str(_value(self._storage) or "")
        except RuntimeError as error:
            logger.debug("no service answered whether a storage quota is used up: %s", error)
            return ""

    def checkpoint_metadata(self, uuid: str) -> dict[str, Any]:
        """What the registry holds as metadata of a checkpoint."""
        asked = self._ask(news.AskMetadata(uuid))
        wait_for(asked, f"the metadata of checkpoint {uuid}", self._thread)
        return dict(_value(asked) or {})

    def _ask(self, question: msgspec.Struct, owner: str = "searcher") -> "Future[bytes]":
        # The searcher knows which experiment the trial belongs to, and asks the others about that alone.
        subject = subjects.asked_by_trial(self._trial, owner, str(type(question).__struct_config__.tag))
        return self._thread.submit(self._thread.ask(subject, msgspec.json.encode(question)))


def _new_id() -> str:
    """An id that the broker knows repeats of a message by: nobody else can guess it, and use it before."""
    return os.urandom(16).hex()


def _value(asked: "Future[bytes]") -> Any:
    """What an owner answered; RuntimeError for a problem that it has."""
    try:
        answer = msgspec.json.decode(asked.result(), type=Answer)
    except Refused as error:
        raise RuntimeError(str(error)) from error
    if answer.problem is not None:
        raise RuntimeError(answer.problem.message)
    return answer.value
