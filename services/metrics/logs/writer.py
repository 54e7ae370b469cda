"""Folded batches of log lines as rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from det_contracts.reports import LogBatch
from services.metrics.logs.tables import LINES, LINES_PER_BATCH
from services.metrics.values import storable

LARGEST_RANK = 2**31 - 1


class LineWriter:
    """Gathers the lines of one commit."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._lines: list[dict[str, Any]] = []

    def write(self, batch: LogBatch, position: int) -> None:
        """Add one accepted batch; `position` is the batch's in LOGS."""
        self._lines += _lines(batch, position)

    def forget(self, experiment_id: int) -> None:
        """Delete the lines of an experiment's tasks, gathered ones included."""
        self.finish()
        mine = LINES.c.task_id.startswith(f"{experiment_id}.")
        self._connection.execute(sa.delete(LINES).where(mine))

    def finish(self) -> None:
        """Write everything gathered so far."""
        if self._lines:
            self._connection.execute(sa.insert(LINES), self._lines)
            self._lines = []


def _lines(batch: LogBatch, position: int) -> Iterable[dict[str, Any]]:
    for index, line in enumerate(batch.lines):
        yield {
            "id": position * LINES_PER_BATCH + index,
            "task_id": batch.task_id,
            "allocation_id": batch.allocation_id,
            "worker_id": batch.worker_id,
            "at": line.at,
            "level": line.level,
            "rank": line.rank if line.rank is None or 0 <= line.rank <= LARGEST_RANK else None,
            "source": batch.source,
            "stdtype": line.stdtype,
            "text": storable(line.text),
        }
