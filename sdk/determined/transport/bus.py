"""The transport of a script that runs on a cluster: reports out, operations and preemption in.

Reports are kept in memory and sent by a background thread; what the searcher and the scheduler decide about
the trial is heard, not asked for. See the architecture, "Life of one trial, as messages".
"""

import asyncio
import atexit
import concurrent.futures
import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from det_contracts import codec, subjects
from det_contracts.commands import Answer
from det_contracts.events import metrics, scheduler, searcher, trial
from det_contracts.queries import Ask, BestValidation, Checkpoints
from det_contracts.reports import ReportBatch, report_id
from determined._info import ClusterInfo, info_directory
from determined.transport.bus_thread import BusThread, TooLarge
from determined.transport.columns import Timed, to_series
from determined.transport.protocol import MetricReport, SearcherOp, StoredCheckpoint

logger = logging.getLogger("determined.transport")

GATHER_S = 0.05
"""How long reports are gathered before they go out together."""
BATCH_REPORTS = 500
BATCH_VALUES = 20_000
"""Values that go into one message; the broker takes 8 MB."""
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
        self._metric: str = config["metric"]
        self._smaller_is_better: bool = config.get("smaller_is_better", True)
        self._thread = thread
        self._reports: deque[Timed] = deque()
        self._sending = asyncio.Event()
        self._awake = False
        self._urgent = False
        self._made = 0
        self._stored = 0
        self._batches = 0
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

    # -- life

    def start(self) -> None:
        """Connect in the background."""
        if self._started:
            return
        self._started = True
        self._thread.start()
        self._thread.submit(self._send_for_ever())
        heard = [
            subjects.about_trial(self._trial),
            subjects.about_allocation(self._allocation),
            subjects.refusals(self._trial),
        ]
        self._thread.submit(self._thread.follow(subjects.CONTROL, heard, self._hear))
        atexit.register(self.close)

    def close(self) -> None:
        """Flush, then leave; raises a refusal that no call has raised yet."""
        if self._closed or not self._started:
            return
        self._closed = True
        atexit.unregister(self.close)
        self._wait_for_reports()
        self._thread.stop()
        self._raise_refusal()

    # -- reports

    def report(self, report: MetricReport) -> None:
        """Queue a report; the background thread sends it with its neighbours."""
        if self._refusals:
            self._raise_refusal()
        self._reports.append((time.time(), report))
        self._made += 1
        if not self._awake:
            self._awake = True
            self._thread.wake(self._sending)

    def flush(self) -> None:
        """Block until every report so far is stored."""
        self._wait_for_reports()
        self._raise_refusal()

    def _wait_for_reports(self) -> None:
        upto = self._made
        if self._stored >= upto:
            return
        self._urgent = True
        self._thread.wake(self._sending)
        with self._lock:
            while self._stored < upto:
                if not self._lock.wait(10):
                    logger.warning("waiting for the cluster to store %d reports", upto - self._stored)

    async def _send_for_ever(self) -> None:
        while True:
            await self._sending.wait()
            if not self._urgent:
                await asyncio.sleep(GATHER_S)
            self._sending.clear()
            self._awake = self._urgent = False
            while self._reports:
                await self._send(self._fitting())

    def _fitting(self) -> int:
        """How many of the waiting reports make the next message; at least one."""
        values = 0
        waiting = min(len(self._reports), BATCH_REPORTS)
        for count in range(waiting):
            # By place: the script goes on reporting, and a deque that grows cannot be iterated over.
            report = self._reports[count][1]
            values += len(report.metrics) + sum(map(len, report.batch_metrics or ()))
            if values > BATCH_VALUES and count:
                return count
        return waiting

    async def _send(self, count: int) -> None:
        reports = [self._reports.popleft() for _ in range(count)]
        try:
            await self._store(reports)
        except TooLarge:
            for report in reports:
                await self._send_alone(report)
        with self._lock:
            self._stored += count
            self._lock.notify_all()

    async def _send_alone(self, timed: Timed) -> None:
        try:
            await self._store([timed])
        except TooLarge as error:
            report = timed[1]
            self._refusals.append(
                f"{report.group} metrics at {report.steps_completed} steps are too large to be sent: {error}"
            )

    async def _store(self, reports: list[Timed]) -> None:
        self._batches += 1
        batch = ReportBatch(
            trial_id=self._trial,
            experiment_id=self._experiment,
            run=self._run,
            number=self._batches,
            searcher_metric=self._metric,
            smaller_is_better=self._smaller_is_better,
            series=to_series(reports),
        )
        id = report_id(self._trial, self._run, self._batches)
        await self._thread.store(subjects.reports(self._trial), msgspec.json.encode(batch), id)

    def _raise_refusal(self) -> None:
        if self._refusals:
            raise RuntimeError(self._refusals.popleft())

    # -- what is heard

    def _hear(self, subject: str, body: bytes, pending: int) -> None:
        event = codec.decode(body, 0).event
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
            self._lock.notify_all()
        if pending == 0:
            self._known.set()

    def _wait_until(self, true: Callable[[], bool], what: str) -> None:
        with self._lock:
            while not true():
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
        self._wait_for_reports()
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
        self._wait_for_reports()
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
        self._wait_for_reports()
        if not self._acknowledged:
            self._acknowledged = True
            fact = trial.PreemptionAcknowledged(self._trial, self._run)
            self._state(fact, f"ack-{self._trial}-{self._run}")

    def exit_early(self, reason: str) -> None:
        """State that the script gives the trial up."""
        self._wait_for_reports()
        self._state(trial.ExitedEarly(self._trial, self._run, reason), f"early-{self._trial}-{self._run}")

    def set_status(self, status: str) -> None:
        """Show what the script is doing."""
        self._raise_refusal()
        self._state_later(trial.StatusSet(self._trial, self._run, status))

    def _state(self, event: Any, id: str) -> None:
        self._publish(event, id).result()

    def _state_later(self, event: Any) -> None:
        self._facts += 1
        self._publish(event, f"fact-{self._allocation}-{self._facts}-{time.time_ns()}")

    def _publish(self, event: Any, id: str) -> "concurrent.futures.Future[None]":
        body = codec.encode(event, id=id, actor=f"trial:{self._trial}", at=time.time())
        return self._thread.submit(self._thread.store(codec.subject_of(event), body, id))

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
