"""A cluster of one trial in memory: `log` holds what would be stored, in order."""

import uuid
from collections.abc import Sequence
from typing import Any

from determined.transport.protocol import MetricReport, SearcherOp, StoredCheckpoint


class FakeTransport:
    """Keep reports pending until something flushes, as a background sender would."""

    def __init__(self, lengths: Sequence[int] = (), preempt_after: int | None = None) -> None:
        self.log: list[tuple[Any, ...]] = []
        self.pending: list[MetricReport] = []
        self.calls: list[str] = []
        self.refusal: RuntimeError | None = None
        self.metadata: dict[str, dict[str, Any]] = {}
        self.best: float | None = None
        self.no_storage = ""
        self.preempt_after = preempt_after
        self._ops = [SearcherOp(seq, length) for seq, length in enumerate(lengths)]

    def start(self) -> None:
        self.calls.append("start")

    def close(self) -> None:
        self.calls.append("close")
        self.flush()

    def report(self, report: MetricReport) -> None:
        self._raise_refusal()
        self.pending.append(report)

    def flush(self) -> None:
        self._store_pending()
        self._raise_refusal()

    def new_checkpoint_id(self) -> str:
        return str(uuid.uuid4())

    def operation(self) -> SearcherOp | None:
        return self._ops[0] if self._ops else None

    def complete(self, seq: int, length: int, metric: object) -> None:
        self._store_pending()
        self.log.append(("completed", seq, length, metric))
        self._ops.pop(0)

    def progress(self, units: float) -> None:
        self.calls.append(f"progress {units}")

    def checkpoint(self, stored: StoredCheckpoint) -> None:
        self._store_pending()
        self.log.append(("checkpoint", stored))
        self.metadata[stored.uuid] = stored.metadata

    def storage_refusal(self, size_bytes: int) -> str:
        self.calls.append(f"storage_refusal {size_bytes}")
        return self.no_storage

    def checkpoint_metadata(self, uuid: str) -> dict[str, Any]:
        return self.metadata.get(uuid, {})

    def preempted(self) -> bool:
        self.calls.append("preempted")
        if self.preempt_after is None:
            return False
        self.preempt_after -= 1
        return self.preempt_after < 0

    def acknowledge_preemption(self) -> None:
        self._store_pending()
        self.log.append(("acknowledged",))

    def exit_early(self, reason: str) -> None:
        self._store_pending()
        self.log.append(("exit_early", reason))

    def set_status(self, status: str) -> None:
        self.log.append(("status", status))

    def best_validation(self) -> float | None:
        return self.best

    def kinds(self) -> list[str]:
        """What was stored, names only; reports by group."""
        return [entry[0] for entry in self.log]

    def _store_pending(self) -> None:
        for report in self.pending:
            self.log.append((report.group, report.steps_completed, report.metrics))
        self.pending.clear()

    def _raise_refusal(self) -> None:
        refusal, self.refusal = self.refusal, None
        if refusal:
            raise refusal
