"""Folded batches as rows, written in the transaction that saves the snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from det_contracts.envelope import Recorded
from det_contracts.events.searcher import ExperimentDeleted
from det_contracts.reports import LogBatch
from services.kit.rules import Key
from services.metrics.domain import Judged
from services.metrics.report_writer import ReportWriter
from services.metrics.tables import LINES, LINES_PER_BATCH, REPORTS, SUMMARIES, TRIALS
from services.metrics.values import storable

LARGEST_RANK = 2**31 - 1


def project(connection: sa.Connection, records: Mapping[Key, Any], events: Sequence[Recorded]) -> None:
    """Write what the folded batches of one commit add."""
    lines: list[dict[str, Any]] = []
    writer = ReportWriter(connection)
    for recorded in events:
        event = recorded.event
        if isinstance(event, ExperimentDeleted) and event.state == "DELETED":
            writer.finish()
            _write_lines(connection, lines)
            lines = []
            _forget(connection, event)
        if not isinstance(event, Judged) or not event.accepted:
            continue
        if isinstance(event.batch, LogBatch):
            lines += _lines(event.batch, recorded.position)
        else:
            writer.write(event.batch, event, recorded.position)
    writer.finish()
    _write_lines(connection, lines)


def _write_lines(connection: sa.Connection, lines: list[dict[str, Any]]) -> None:
    if lines:
        connection.execute(sa.insert(LINES), lines)


def _forget(connection: sa.Connection, event: ExperimentDeleted) -> None:
    for table in (REPORTS, SUMMARIES, TRIALS):
        for trial_id in event.trial_ids:
            connection.execute(sa.delete(table).where(table.c.trial_id == trial_id))
    connection.execute(sa.delete(LINES).where(LINES.c.task_id.startswith(f"{event.experiment_id}.")))


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
