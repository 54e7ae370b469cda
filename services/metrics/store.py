"""Writes folded batches as rows, in the transaction that saves the snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def project(connection: sa.Connection, records: Mapping[Key, Any], events: Sequence[Recorded]) -> None:
    """Write what the folded batches of one commit add."""
    writer, lines = ReportWriter(connection), LineWriter(connection)
    # In log order, deletions among writes: what was reported before a deletion goes, and what comes after it
    # stays refused by the fold.
    for recorded in events:
        event = recorded.event
        if isinstance(event, TrialCreated):
            writer.record_home(event.trial_id, event.experiment_id)
        if isinstance(event, TrialsDeleted):
            writer.delete_trials(event.trial_ids)
            lines.delete_tasks(event.task_ids)
        if isinstance(event, ExperimentDeleted) and event.state == "DELETED":
            writer.delete_trials(event.trial_ids)
            lines.delete_experiment(event.experiment_id)
        if isinstance(event, TaskForgotten):
            lines.delete_tasks([event.task_id])
        if isinstance(event, PointsDropped):
            writer.drop_points(event.trial_id, event.through)
        if isinstance(event, LogsTrimmed):
            lines.trim(event.through)
        if isinstance(event, JudgedBatch) and event.expired and isinstance(event.batch, LogLines):
            lines.count_expired(event.batch)
        if not isinstance(event, JudgedBatch) or not event.accepted:
            continue
        if isinstance(event.batch, LogLines):
            lines.write(event.batch, recorded.position)
        else:
            writer.write(event.batch, event, recorded.position)
    writer.finish()
    lines.finish()
