"""Transport of a trial that runs off cluster, over REST (docs/unmanaged.md)."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec

from determined.common.api import errors
from determined.transport.own_ids import OwnIds
from determined.transport.protocol import MetricReport, NeverStored, SearcherOp, StoredCheckpoint
from determined.transport.rest import PASSING_STATUSES, Session

BEAT_S, POLL_S, PAUSE_S = 50.0, 10.0, 2.0
INVALID_HP = "EXITED_REASON_INVALID_HP"
_REPEATED = "overwriting existing metric keys"
logger = logging.getLogger("determined.core")


class Place(msgspec.Struct, frozen=True):
    """The trial run that this process performs."""

    experiment_id: int
    trial_id: int
    task_id: str
    run: int


class OutsideTransport:
    """Sends reports in order from a thread. They wait while the cluster is unreachable; see `Transport`."""

    def __init__(self, connect: Callable[[], Session], place: Place) -> None:
        """`connect` returns a separate session for each thread."""
        self._connect, self._place = connect, place
        self._checkpoint_ids = OwnIds(place.trial_id)
        # One for the script's threads. A session of `requests` must not be shared between threads that send
        # at the same time.
        self._session = connect()
        self.ending = "COMPLETED"
        """The final state to report for the trial."""
        self._leaving: queue.Queue[Callable[[Session], object] | None] = queue.Queue()
        self._refusal: RuntimeError | None = None
        self._preempted = threading.Event()
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=work, name=f"determined-{name}", daemon=True)
            for name, work in (("reports", self._send_all), ("signs", self._give_signs))
        ]
        self._started = self._closed = False

    def start(self) -> None:
        if not self._started:
            self._started = True
            for thread in self._threads:
                thread.start()

    def close(self) -> None:
        if self._closed:
            return
        # Closed before the refusal is raised, so that a second call does nothing.
        self._closed = True
        if self._started:
            # Signs of life go on until the last report is stored, which may take long after an outage: a
            # trial that gives none counts as dead.
            self._leaving.put(None)
            self._threads[0].join()
            self._over.set()
            self._threads[1].join()
        try:
            self._ask(self._session, "PATCH", self._trial, {"state": f"STATE_{self.ending}"})
        except errors.StatusException as error:
            logger.warning("the end of the trial was not accepted: %s", error)
        self._session.close()
        self._raise_refusal()

    def report(self, report: MetricReport) -> None:
        self._raise_refusal()
        values = {"avgMetrics": report.metrics, "batchMetrics": report.batch_metrics}
        wire_report = {"trialId": self._place.trial_id, "trialRunId": self._place.run, "metrics": values}
        body = {"group": report.group, "metrics": {**wire_report, "stepsCompleted": report.steps_completed}}
        path = f"{self._trial}/metrics"
        self._leaving.put(lambda session: self._ask(session, "POST", path, body, repeated=_REPEATED))

    def flush(self) -> None:
        self._settle()
        self._raise_refusal()

    def operation(self) -> SearcherOp | None:
        answer = self._ask(self._session, "GET", f"{self._trial}/searcher/operation")
        if answer.get("completed") or not answer.get("op"):
            return None
        return SearcherOp(seq=0, length=int(answer["op"]["validateAfter"]["length"]))

    def complete(self, seq: int, length: int, metric: object) -> None:
        self._settle()
        body = {"op": {"length": length}, "searcherMetric": metric}
        self._ask(self._session, "POST", f"{self._trial}/searcher/completed_operation", body)

    def progress(self, units: float) -> None:
        self._leaving.put(self._softly("POST", f"{self._trial}/progress", units))

    def set_status(self, status: str) -> None:
        self._raise_refusal()
        self._leaving.put(self._softly("POST", f"{self._trial}/runner/metadata", {"state": status}))

    def new_checkpoint_id(self) -> str:
        return self._checkpoint_ids.new()

    def checkpoint(self, stored: StoredCheckpoint) -> None:
        self._settle()
        body = {
            "uuid": stored.uuid,
            "taskId": self._place.task_id,
            "resources": {name: str(size) for name, size in stored.resources.items()},
            "metadata": stored.metadata,
            "secret": self._checkpoint_ids.take_secret(stored.uuid),
            "state": "STATE_COMPLETED",
        }
        self._ask(self._session, "POST", "/api/v1/checkpoints", body, is_fact=True)

    def storage_refusal(self, size_bytes: int) -> str:
        try:
            path = f"{self._trial}/storage-refusal"
            return str(self._session.get(path, {"sizeBytes": size_bytes}).get("reason") or "")
        except (errors.StatusException, errors.MasterNotFoundException):
            # The cluster does not answer, or is an earlier version; do not delay the checkpoint.
            return ""

    def checkpoint_metadata(self, uuid: str) -> dict[str, Any]:
        try:
            answer = self._ask(self._session, "GET", f"/api/v1/checkpoints/{uuid}")
        except errors.NotFoundException:
            return {}
        return answer["checkpoint"].get("metadata") or {}

    def preempted(self) -> bool:
        return self._preempted.is_set()

    def acknowledge_preemption(self) -> None:
        self._settle()

    def exit_early(self, reason: str) -> None:
        self._settle()
        if reason == INVALID_HP:
            self._ask(self._session, "POST", f"{self._trial}/early_exit", {"reason": reason})

    def best_validation(self) -> float | None:
        self._settle()
        path = f"/api/v1/experiments/{self._place.experiment_id}/searcher/best_searcher_validation_metric"
        try:
            metric = self._ask(self._session, "GET", path)["metric"]
        except errors.NotFoundException:
            return None
        return None if metric is None else float(metric)

    def ship(self, lines: list[dict[str, Any]]) -> None:
        """Store lines of the script's output, after everything reported before."""
        lines = [{"task_id": self._place.task_id, **line} for line in lines]
        self._leaving.put(self._softly("POST", "/task-logs", lines))

    @property
    def _trial(self) -> str:
        return f"/api/v1/trials/{self._place.trial_id}"

    def _raise_refusal(self) -> None:
        refusal, self._refusal = self._refusal, None
        if refusal is not None:
            raise refusal

    def _settle(self) -> None:
        if self._started and not self._closed:
            self._leaving.join()

    def _send_all(self) -> None:
        session = self._connect()
        while True:
            send = self._leaving.get()
            try:
                if send is None:
                    return session.close()
                send(session)
            except Exception as error:
                # Whatever it is: without this thread, all that follows would wait for ever. The first error
                # is raised. Those after it mostly follow from it.
                self._refusal = self._refusal or RuntimeError(f"a report was refused: {error}")
            finally:
                self._leaving.task_done()

    def _softly(self, method: str, path: str, body: Any) -> Callable[[Session], object]:
        """Return a send function for optional data: a refusal is only logged."""

        def send(session: Session) -> None:
            try:
                self._ask(session, method, path, body)
            except errors.StatusException as error:
                logger.warning("%s was refused: %s", path, error)

        return send

    def _give_signs(self) -> None:
        """Send heartbeats, and check for preemption."""
        session, beat_at = self._connect(), 0.0
        while not self._over.is_set():
            try:
                if time.monotonic() >= beat_at:
                    session.patch(self._trial, {})
                    beat_at = time.monotonic() + BEAT_S
                path = f"/api/v1/allocations/{self._place.task_id}/signals/preemption"
                if session.get(path, {"timeoutSeconds": 0}).get("preempt"):
                    self._preempted.set()
            except (errors.BadRequestException, errors.BadResponseException) as error:
                logger.debug("a heartbeat was not accepted: %s", error)
            self._over.wait(POLL_S)
        session.close()

    def _ask(
        self,
        session: Session,
        method: str,
        path: str,
        body: Any = None,
        *,
        repeated: str = "",
        is_fact: bool = False,
    ) -> Any:
        """Send a request until it is answered. Raises `StatusException` for a refusal.

        If an answer was lost, a repeated request may be refused with the text `repeated`; that is not an
        error. With `is_fact`, raises `NeverStored` for a refusal before which no answer was lost.
        """
        tried = False
        while True:
            try:
                call: dict[str, Callable[..., Any]] = {
                    "GET": session.get, "POST": session.post, "PATCH": session.patch
                }  # fmt: skip
                return call[method](path) if body is None else call[method](path, body)
            except errors.StatusException as error:
                if tried and repeated and repeated in str(error):
                    return {}
                if error.status_code not in PASSING_STATUSES:
                    if is_fact and not tried:
                        raise NeverStored(str(error)) from error
                    raise
            # A proxy may answer in place of a master that is away, and with a page.
            except (errors.MasterNotFoundException, errors.BadResponseException) as error:
                if not tried:
                    logger.warning("the cluster does not answer (%s); what is reported waits", error)
            tried = True
            time.sleep(PAUSE_S)
