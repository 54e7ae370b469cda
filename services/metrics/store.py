"""Writes folded batches as rows, in the transaction that saves the snapshot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from det_contracts.envelope import Recorded
from det_contracts.events.metrics import LogsTrimmed, PointsDropped
from det_contracts.events.scheduler import TaskForgotten
from det_contracts.events.searcher import ExperimentDeleted, TrialCreated, TrialsDeleted
from services.kit.rules import Key
from services.metrics.domain import JudgedBatch, LogLines
from services.metrics.logs.writer import LineWriter
from services.metrics.reports.writer import ReportWriter


def _write_home(reports: ReportWriter, lines: LineWriter, recorded: Recorded) -> None:
    reports.record_home(recorded.event.trial_id, recorded.event.experiment_id)


def _delete_trials(reports: ReportWriter, lines: LineWriter, recorded: Recorded) -> None:
    reports.delete_trials(recorded.event.trial_ids)
    lines.delete_tasks(recorded.event.task_ids)


def _delete_experiment(reports: ReportWriter, lines: LineWriter, recorded: Recorded) -> None:
    event: ExperimentDeleted = recorded.event
    if event.state == "DELETED":
        reports.delete_trials(event.trial_ids)
        lines.delete_experiment(event.experiment_id)


def _delete_task(reports: ReportWriter, lines: LineWriter, recorded: Recorded) -> None:
    lines.delete_tasks([recorded.event.task_id])


def _drop_points(reports: ReportWriter, lines: LineWriter, recorded: Recorded) -> None:
    reports.drop_points(recorded.event.trial_id, recorded.event.through)


def _trim_logs(reports: ReportWriter, lines: LineWriter, recorded: Recorded) -> None:
    lines.trim(recorded.event.through)


def _write_batch(reports: ReportWriter, lines: LineWriter, recorded: Recorded) -> None:
    judged: JudgedBatch = recorded.event
    if judged.expired and isinstance(judged.batch, LogLines):
        lines.count_expired(judged.batch)
    if not judged.accepted:
        return
    if isinstance(judged.batch, LogLines):
        lines.write(judged.batch, recorded.position)
    else:
        reports.write(judged.batch, judged, recorded.position)


_WRITES: dict[type, Callable[[ReportWriter, LineWriter, Recorded], None]] = {
    TrialCreated: _write_home,
    TrialsDeleted: _delete_trials,
    ExperimentDeleted: _delete_experiment,
    TaskForgotten: _delete_task,
    PointsDropped: _drop_points,
    LogsTrimmed: _trim_logs,
    JudgedBatch: _write_batch,
}
PROJECTED = frozenset(_WRITES)
"""Kinds of events that are written. All others, of which CONTROL has many more, need not be kept for it."""


def project(connection: sa.Connection, records: Mapping[Key, Any], events: Sequence[Recorded]) -> None:
    """Write what the folded batches of one commit add."""
    reports, lines = ReportWriter(connection), LineWriter(connection)
    # In log order, deletions among writes: what was reported before a deletion goes, and what comes after it
    # stays refused by the fold.
    for recorded in events:
        write = _WRITES.get(type(recorded.event))
        if write is not None:
            write(reports, lines, recorded)
    reports.finish()
    lines.finish()
