"""The transport of a script that runs off cluster: it logs what would be sent to a cluster."""

import logging
import uuid
from typing import Any

from determined.transport.protocol import MetricReport, SearcherOp, StoredCheckpoint

logger = logging.getLogger("determined.core")


class _Unconnected:
    """A transport without a connection; starting, flushing and closing do nothing, and ids are random."""

    def start(self) -> None:
        pass

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def new_checkpoint_id(self) -> str:
        return str(uuid.uuid4())


class OfflineTransport(_Unconnected):
    """Behaves like a cluster with one trial and one operation, without preemption.

    `length` is the length of the single operation, in the searcher's unit. Nothing uses the network.
    """

    def __init__(self, length: int = 1) -> None:
        self._operation = SearcherOp(seq=0, length=length)
        self._completed = False

    def report(self, report: MetricReport) -> None:
        logger.info(
            "reported %s metrics: steps_completed=%s, metrics=%s",
            report.group,
            report.steps_completed,
            report.metrics,
        )

    def operation(self) -> SearcherOp | None:
        return None if self._completed else self._operation

    def complete(self, seq: int, length: int, metric: object) -> None:
        logger.info("completed the searcher operation of length %s: metric=%s", length, metric)
        self._completed = True

    def progress(self, units: float) -> None:
        logger.info("reported progress: %s of %s", units, self._operation.length)

    def checkpoint(self, stored: StoredCheckpoint) -> None:
        logger.info("saved checkpoint %s", stored.uuid)

    def storage_refusal(self, size_bytes: int) -> str:
        return ""

    def checkpoint_metadata(self, uuid: str) -> dict[str, Any]:
        return {}

    def preempted(self) -> bool:
        return False

    def acknowledge_preemption(self) -> None:
        logger.info("acknowledged that nothing is left to do for now")

    def exit_early(self, reason: str) -> None:
        logger.info("reported early exit: %s", reason)

    def set_status(self, status: str) -> None:
        logger.info("status: %s", status)

    def best_validation(self) -> float | None:
        return None
