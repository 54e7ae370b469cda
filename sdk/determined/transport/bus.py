"""The transport of a script that runs on a cluster: reports out, operations and preemption in.

Reports are kept in memory and sent by a background thread; what the searcher and the scheduler decide about
the trial is heard, not asked for. See the architecture, "Life of one trial, as messages".
"""

import atexit
import json
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from det_contracts import codec, subjects
from det_contracts.commands import Answer
from det_contracts.events import metrics, scheduler, searcher, trial
from det_contracts.queries import Ask, BestValidation, Checkpoints
from det_contracts.reports import ReportBatch
from determined._info import ClusterInfo, info_directory
from determined.transport.bus_thread import BusThread
from determined.transport.outbox import Outbox
from determined.transport.protocol import MetricReport, SearcherOp, StoredCheckpoint

logger = logging.getLogger("determined.transport")

PROGRESS_EVERY_S = 1.0
FIRST_ANSWER_S = 5.0


def connect(info: ClusterInfo) -> "BusTransport":
    """The transport of this allocation; reads the broker's address from `bus.json` in the info directory."""
    settings = json.loads((info_directory() / "bus.json").read_text())
    thread = BusThread(settings["urls"], settings.get("credentials"), settings.get("inbox_prefix", "_INBOX"))
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
        self._facts = 0
        self._lock = threading.Condition()
        self._op: SearcherOp | None = None
        self._idled = 0
        self._known = threading.Event()
        self._preempted = False
        self._refusals: deque[str] = deque()
        self._refused = 0
        self._progressed_at = 0.0
        self._acknowledged = False
        self._started = self._closed = False
        self._process = 0
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

    # -- life

    def start(self) -> None:
        """Connect in the background."""
        if self._started:
            return
        self._started, self._process = True, os.getpid()
        self._thread.start()
        self._thread.keep_going(self._outbox.send_for_ever, "sending reports")
        heard = [
            subjects.about_trial(self._trial),
            subjects.about_allocation(self._allocation),
            subjects.refusals(self._trial),
        ]
        listen = partial(self._thread.follow, subjects.CONTROL, heard, self._hear)
        self._thread.keep_going(listen, "listening to the cluster")
        atexit.register(self.close)

    def close(self) -> None:
        """Flush, then leave; raises a refusal that no call has raised yet."""
        if self._closed or not self._started or os.getpid() != self._process:
            return
        self._closed = True
        atexit.unregister(self.close)
        self._outbox.wait()
        self._thread.stop()
        self._raise_refusal()

    # -- reports

    def report(self, report: MetricReport) -> None:
        """Queue a report; the background thread sends it with its neighbours."""
        if self._refusals:
            self._raise_refusal()
        self._outbox.put(report)

    def flush(self) -> None:
        """Block until every report so far is stored."""
        self._outbox.wait()
        self._raise_refusal()

    def _raise_refusal(self) -> None:
        if self._refusals:
            raise RuntimeError(self._refusals.popleft())

    # -- what is heard

    def _hear(self, subject: str, body: bytes, pending: int) -> None:
        try:
            self._take(codec.read(subject, body, 0).event)
        finally:
            with self._lock:
                if pending == 0:
                    self._known.set()
                self._lock.notify_all()

    def _take(self, event: Any) -> None:
        with self._lock:
            match event:
                case searcher.OperationSet():
                    if self._op is None or event.seq > self._op.seq:
                        self._op = SearcherOp(event.seq, event.length)
                case searcher.TrialIdled():
                    self._idled = max(self._idled, event.seq)
                case scheduler.PreemptRequested():
                    self._preempted = True
                case metrics.ReportRefused() if event.run == self._run and event.number > self._refused:
                    self._refused = event.number
                    self._refusals.append(event.reason)

    def _wait_until(self, true: Callable[[], bool], what: str) -> None:
        with self._lock:
            while not true():
                self._thread.check()
                if not self._lock.wait(30):
                    logger.warning("waiting for the cluster: %s", what)

    # -- searcher

    def operation(self) -> SearcherOp | None:
        """The open operation, as the searcher last said."""
        self._wait_until(lambda: self._known.is_set() and self._op is not None, "the trial's next operation")
        op = self._op
        return op if op is not None and op.seq > self._idled else None

    def complete(self, seq: int, length: int, metric: object) -> None:
        """State the completion, then wait for the searcher's answer to it."""
        self._outbox.wait()
        done = trial.OperationCompleted(
            trial_id=self._trial, run=self._run, seq=seq, length=length, metric=metric
        )
        self._state(done, f"completed-{self._trial}-{self._run}-{seq}")
        self._wait_until(
            lambda: self._idled >= seq or (self._op is not None and self._op.seq > seq),
            f"the searcher's answer to operation {seq}",
        )

    def progress(self, units: float) -> None:
        """Thinned out: at most one a second goes into the log."""
        now = time.monotonic()
        if now - self._progressed_at >= PROGRESS_EVERY_S:
            self._progressed_at = now
            self._state_later(trial.Progressed(self._trial, self._run, units))

    # -- facts

    def checkpoint(self, stored: StoredCheckpoint) -> None:
        """State that a checkpoint is stored."""
        self._outbox.wait()
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
        self._state(fact, f"checkpoint-{stored.uuid}")

    def preempted(self) -> bool:
        """Whether this allocation shall leave; a local answer after the first."""
        if not self._preempted and not self._known.is_set():
            self._known.wait(FIRST_ANSWER_S)
        return self._preempted

    def acknowledge_preemption(self) -> None:
        """State that the coming exit is meant."""
        self._outbox.wait()
        if not self._acknowledged:
            self._acknowledged = True
            fact = trial.PreemptionAcknowledged(self._trial, self._run)
            self._state(fact, f"ack-{self._trial}-{self._run}")

    def exit_early(self, reason: str) -> None:
        """State that the script gives the trial up."""
        self._outbox.wait()
        self._state(trial.ExitedEarly(self._trial, self._run, reason), f"early-{self._trial}-{self._run}")

    def set_status(self, status: str) -> None:
        """Show what the script is doing."""
        self._raise_refusal()
        shown = status.replace("\0", "")[: trial.MOST_TEXT]
        self._state_later(trial.StatusSet(self._trial, self._run, shown))

    def _state(self, event: Any, id: str) -> None:
        self._thread.submit(self._stored(event, id)).result()

    def _state_later(self, event: Any) -> None:
        self._facts += 1
        id = f"fact-{self._allocation}-{self._facts}-{time.time_ns()}"
        self._thread.try_once(self._stored(event, id), f"telling {codec.kind_of(event).name}")

    async def _stored(self, event: Any, id: str) -> None:
        body = codec.encode(event, id=id, actor=f"trial:{self._trial}", at=time.time())
        await self._thread.store(codec.subject_of(event), body, id)

    # -- questions

    def best_validation(self) -> float | None:
        """The best searcher metric of the experiment so far."""
        self._raise_refusal()
        value = self._ask("metrics", BestValidation(self._experiment, self._smaller_is_better))
        return None if value is None else float(value)

    def checkpoint_metadata(self, uuid: str) -> dict[str, Any]:
        """What the registry holds as metadata of a checkpoint."""
        rows = self._ask("checkpoints", Checkpoints(uuids=[uuid]))
        return dict(rows[0]["metadata"]) if rows else {}

    def _ask(self, owner: str, query: msgspec.Struct) -> Any:
        name = str(type(query).__struct_config__.tag)
        body = msgspec.json.encode(Ask(msgspec.Raw(msgspec.json.encode(query))))
        subject = subjects.trial_query(self._trial, owner, name)
        reply = self._thread.submit(self._thread.ask(subject, body)).result()
        answer = msgspec.json.decode(reply, type=Answer)
        if answer.problem is not None:
            raise RuntimeError(answer.problem.message)
        return answer.value
