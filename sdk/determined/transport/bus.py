"""The transport of a script on a cluster: sends reports and facts, receives operations and preemption.

Reports are kept in memory and sent by a background thread. `ClusterNews` receives the cluster's decisions
about the trial, and `Questions` the answers to the script's questions.
"""

import atexit
import json
import logging
import os
import time
from typing import Any

from det_contracts import codec, subjects
from det_contracts.events import trial
from det_contracts.limits import TEXT_CHARACTERS
from det_contracts.reports import ReportBatch
from determined._info import ClusterInfo, info_directory
from determined.transport.budget import Budget
from determined.transport.bus_thread import BusThread
from determined.transport.cluster_news import ClusterNews
from determined.transport.leaving import exit_patience, lost
from determined.transport.newest import Newest
from determined.transport.outbox import Fact, Outbox
from determined.transport.own_ids import OwnIds
from determined.transport.protocol import MetricReport, SearcherOp, StoredCheckpoint
from determined.transport.questions import Questions
from determined.transport.repeats import joined
from determined.transport.waiting import Patience

logger = logging.getLogger("determined.transport")

PROGRESS_EVERY_S = 1.0
PROGRESS_AT_ONCE, PROGRESS_PER_S = 1000, 20.0
"""Progress reports that a custom search receives individually: burst size, and rate per second after that."""
FIRST_ANSWER_S = 5.0
FACT_S = 10.0
"""How long a call waits, once per outage, for its fact to be stored. After that it is sent later."""


def connect(info: ClusterInfo) -> "BusTransport":
    """Create the transport of this allocation.

    Reads the broker's address from `bus.json` in the info directory.
    """
    path = info_directory() / "bus.json"
    settings = json.loads(path.read_text())
    inbox = settings.get("inbox_prefix", "_INBOX")
    thread = BusThread(settings["urls"], settings.get("credentials"), inbox, path)
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
        self._thread = thread
        self._witness = subjects.witness_of_trial(self._trial)
        """Subject that facts are published to. The intake passes them on to the log."""
        self._news = ClusterNews(thread, self._trial, self._run, self._allocation)
        self._refusals = self._news.refusals
        self._newest: dict[str, MetricReport] = {}
        """By group, everything reported at the latest steps."""
        self._progressed_at = 0.0
        self._each_progress = (
            Budget(PROGRESS_AT_ONCE, PROGRESS_PER_S) if config.get("name") == "custom" else None
        )
        """Limits progress to a custom search method. It gets every report, unless the script floods it."""
        self._checkpoint_ids = OwnIds(self._trial)
        self._acknowledged = False
        self._started = self._closed = False
        self._exit_patience_s = exit_patience()
        self._process = os.getpid()
        """A forked process must not use what it inherits: the thread does not exist there."""
        head = ReportBatch(
            trial_id=self._trial,
            experiment_id=self._experiment,
            run=self._run,
            number=0,
            searcher_metric=config["metric"],
            smaller_is_better=config.get("smaller_is_better", True),
            series=[],
            # Several processes of a run may report, one after another.
            sender=os.urandom(6).hex(),
        )
        self._outbox = Outbox(thread, head, self._refusals.append)
        self._questions = Questions(thread, self._trial, head.smaller_is_better, self._outbox.mark)
        self._progress = Newest(thread, self._tell, "progress")
        self._status = Newest(thread, self._tell, "the status")
        self._first_answer = Patience(FIRST_ANSWER_S)
        self._facts = Patience(FACT_S)

    # -- life

    def start(self) -> None:
        """Connect in the background."""
        if self._started:
            return
        self._started, self._process = True, os.getpid()
        self._thread.start()
        self._thread.keep_going(self._outbox.send_for_ever, "sending reports")
        self._news.start()
        # A script may end without leaving the context, by `sys.exit` in a callback or by an error. Its last
        # reports are sent all the same.
        atexit.register(self._leave_at_exit)

    def close(self) -> None:
        """Flush, then disconnect. Raises a refusal that no call has raised yet."""
        if not self._begin_to_leave():
            return
        # It refers to this object, which would live until the process exits.
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
        # A forked process that exits runs the functions its parent registered with `atexit`, too.
        if self._closed or not self._started or os.getpid() != self._process:
            return False
        self._closed = True
        return True

    def _leave_at_exit(self) -> None:
        """Flush the reports of a script that exits without `close`. Failures can only be logged."""
        if not self._begin_to_leave():
            return
        patience_s = self._exit_patience_s
        try:
            if self._outbox.wait(patience_s):
                self._thread.stop(within_s=1.0)
            else:
                self._tell_lost(f"for {patience_s:g} s nothing could be stored{self._thread.trouble}")
        except BaseException as error:
            self._tell_lost(f"the wait for it was interrupted by {error!r}")
        self._log_refusals()

    def _tell_lost(self, why: str) -> None:
        if left := self._outbox.unsettled():
            logger.error("trial %s, run %s: %s", self._trial, self._run, lost(left, why))

    def _log_refusals(self) -> None:
        while self._refusals:
            logger.error("%s", self._refusals.popleft())

    # -- reports

    def report(self, report: MetricReport) -> None:
        """Queue a report; the background thread sends it in a batch.

        A metric that repeats one of the previous report raises RuntimeError immediately. Repeats of earlier
        ones are detected later by the metrics service.
        """
        # Only then more is looked at: this is called in training loops, where a microsecond counts.
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
        """Block until all reports so far are stored."""
        self._outbox.wait()
        self._raise_refusal()

    def _raise_refusal(self) -> None:
        if self._refusals:
            raise RuntimeError(self._refusals.popleft())

    # -- searcher

    def operation(self) -> SearcherOp | None:
        """Return the open operation, according to the searcher's latest message."""
        return self._news.operation()

    def complete(self, seq: int, length: int, metric: object) -> None:
        """Publish the completion, then wait for the searcher's answer to it."""
        done = trial.OperationCompleted(
            trial_id=self._trial, run=self._run, seq=seq, length=length, metric=metric
        )
        # In the same queue as reports, so that the search never compares a metric that is not stored yet.
        self._outbox.wait_for(self._put(done, f"the completion of operation {seq}"))
        self._news.wait_for_answer_to(seq)

    def progress(self, units: float) -> None:
        """Publish progress, thinned to one per second in the log. A custom search receives each report."""
        now, event = time.monotonic(), trial.Progressed(self._trial, self._run, units)
        if self._each_progress is not None and self._each_progress.spend(now):
            self._progressed_at = now
            self._put(event, "the progress")
            return
        if now - self._progressed_at >= PROGRESS_EVERY_S:
            self._progressed_at = now
            self._progress.tell(event)

    # -- facts

    def new_checkpoint_id(self) -> str:
        """Return an id that only this trial can register."""
        return self._checkpoint_ids.new()

    def checkpoint(self, stored: StoredCheckpoint) -> None:
        """Publish that a checkpoint is stored."""
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
            secret=self._checkpoint_ids.take_secret(stored.uuid),
        )
        self._state(fact, f"checkpoint {stored.uuid}")

    def preempted(self) -> bool:
        """Whether this allocation should exit. Answered locally after the first call."""
        if not self._news.preempted and not self._news.leave_answered.done():
            self._first_answer.lasts(self._news.leave_answered)
        return self._news.preempted

    def acknowledge_preemption(self) -> None:
        """Publish that the script is about to exit intentionally."""
        if not self._acknowledged:
            self._acknowledged = True
            fact = trial.PreemptionAcknowledged(self._trial, self._run)
            self._state(fact, "the acknowledged preemption")

    def exit_early(self, reason: str) -> None:
        """Publish that the script ends the trial."""
        fact = trial.ExitedEarly(self._trial, self._run, reason)
        self._state(fact, "the early exit")

    def set_status(self, status: str) -> None:
        """Publish the script's status text."""
        self._raise_refusal()
        # PostgreSQL takes no NUL in texts.
        shown = status.replace("\0", "")[:TEXT_CHARACTERS]
        self._status.tell(trial.StatusSet(self._trial, self._run, shown))

    def _state(self, event: Any, what: str) -> None:
        """Store a fact after all earlier reports. In an outage, return and store it later."""
        fact = self._put(event, what)
        if not self._facts.lasts(fact.settled):
            logger.warning("cannot reach the cluster: %s will be sent later%s", what, self._thread.trouble)
            # Before the last look at `settled`: a refusal from now on is kept for a later call, and cannot be
            # missed.
            fact.left = True
            self._thread.check()
        if fact.settled.done():
            fact.settled.result()

    def _put(self, event: Any, what: str) -> Fact:
        id = _new_id()
        body = self._encoded(event, id)
        try:
            # As every reader does. What none of them can read would be skipped without a word.
            codec.decode_event(codec.decode_envelope(body))
        except codec.BadRecord as error:
            raise ValueError(f"{what} cannot be stored: {error.__cause__ or error}") from None
        fact = Fact(what, self._witness, body, id)
        self._outbox.put_fact(fact)
        return fact

    async def _tell(self, event: Any) -> None:
        id = _new_id()
        await self._thread.store(self._witness, self._encoded(event, id), id)

    def _encoded(self, event: Any, id: str) -> bytes:
        return codec.encode(event, id=id, actor=f"trial:{self._trial}", at=time.time())

    # -- questions

    def best_validation(self) -> float | None:
        """Return the experiment's best searcher metric so far. In an outage, the last known value."""
        self._raise_refusal()
        return self._questions.best_validation()

    def storage_refusal(self, size_bytes: int) -> str:
        """Return why the registry refuses another checkpoint of this size, or an empty string."""
        return self._questions.storage_refusal(size_bytes)

    def checkpoint_metadata(self, uuid: str) -> dict[str, Any]:
        """Return a checkpoint's metadata from the registry."""
        return self._questions.checkpoint_metadata(uuid)


def _new_id() -> str:
    """Return a deduplication id for the broker.

    It is random, so that nobody can guess it and use it first.
    """
    return os.urandom(16).hex()
