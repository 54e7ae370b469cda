"""Metrics of the metrics service beyond those common to all services."""

from __future__ import annotations

from collections.abc import Sequence

from det_contracts.envelope import Recorded
from det_contracts.reports import ReportBatch
from services.kit.log import Stored
from services.kit.process_metrics import Measures
from services.metrics.domain import JudgedBatch, LogLines


class BatchCounters(Measures):
    """Counts the contents of the batches in REPORTS and LOGS."""

    def __init__(self, owner: str) -> None:
        super().__init__(owner)
        self._reports = self.counter("reports", "Reports of metrics received", "group")
        self._points = self.counter("points", "Values of metrics received", "group")
        self._lines = self.counter("log_lines", "Log lines that came in")

    def folded(
        self, stream: str, messages: Sequence[Stored], events: Sequence[Recorded], seconds: float
    ) -> None:
        super().folded(stream, messages, events, seconds)
        for event in events:
            if isinstance(event.event, JudgedBatch):
                self._count(event.event.batch)

    def _count(self, batch: ReportBatch | LogLines) -> None:
        if isinstance(batch, LogLines):
            self._lines.labels(self.owner).inc(batch.count)
            return
        for series in batch.series:
            group = series.group if series.group in ("training", "validation") else "other"
            self._reports.labels(self.owner, group).inc(len(series.steps))
            self._points.labels(self.owner, group).inc(len(series.steps) * len(series.columns))
