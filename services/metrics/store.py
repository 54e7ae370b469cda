"""Writes folded batches as rows, in the transaction that saves the snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from det_contracts.envelope import Recorded
from det_contracts.events.metrics import LogsTrimmed, PointsDropped
from det_contracts.events.scheduler import TaskForgotten
from det_contracts.events.searcher import ExperimentDeleted, TrialsDeleted
from services.kit.rules import Key
from services.metrics.domain import Judged, LogLines
from services.metrics.logs.writer import LineWriter
from services.metrics.reports.writer import ReportWriter


def project(connection: sa.Connection, records: Mapping[Key, Any], events: Sequence[Recorded]) -> None:
    """Write what the folded batches of one commit add."""
    writer, lines = ReportWriter(connection), LineWriter(connection)
    for recorded in events:
        event = recorded.event
        if isinstance(event, TrialsDeleted):
            writer.forget(event.trial_ids)
            lines.forget(event.task_ids)
        if isinstance(event, ExperimentDeleted) and event.state == "DELETED":
            writer.forget(event.trial_ids)
            lines.forget_all(event.experiment_id)
        if isinstance(event, TaskForgotten):
            lines.forget([event.task_id])
        if isinstance(event, PointsDropped):
            writer.drop(event.trial_id, event.through)
        if isinstance(event, LogsTrimmed):
            lines.trim(event.through)
        if isinstance(event, Judged) and event.passed_over and isinstance(event.batch, LogLines):
            lines.pass_over(event.batch)
        if not isinstance(event, Judged) or not event.accepted:
            continue
        if isinstance(event.batch, LogLines):
            lines.write(event.batch, recorded.position)
        else:
            writer.write(event.batch, event, recorded.position)
    writer.finish()
    lines.finish()
