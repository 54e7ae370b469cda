"""Metrics and log lines as tables, written in the transaction that saves the snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from det_contracts.envelope import Recorded
from det_contracts.reports import LogBatch, ReportBatch
from services.kit.database import upsert
from services.kit.rules import Key
from services.metrics.domain import VALIDATION, Archive, Judged, Row
from services.metrics.summary import Summary, add, from_values
from services.metrics.values import finite

TABLES = sa.MetaData()
ROWS_PER_BATCH = 100_000
LINES_PER_BATCH = 4096

REPORTS = sa.Table(
    "reports",
    TABLES,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("trial_id", sa.BigInteger, nullable=False),
    sa.Column("run", sa.Integer, nullable=False),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("steps", sa.BigInteger, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("metrics", sa.LargeBinary, nullable=False),
    sa.Column("batch_metrics", sa.LargeBinary),
    sa.Column("metric", sa.Float),
    sa.Column("archived", sa.Boolean, nullable=False),
    sa.Index("reports_by_steps", "trial_id", "run", "steps", "id"),
    sa.Index("reports_by_metric", "trial_id", "kind", "archived", "metric"),
)
TRIALS = sa.Table(
    "trials",
    TABLES,
    sa.Column("trial_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("experiment_id", sa.BigInteger, nullable=False, index=True),
    sa.Column("smaller_is_better", sa.Boolean, nullable=False),
    sa.Column("total_batches", sa.BigInteger, nullable=False),
)
SUMMARIES = sa.Table(
    "summaries",
    TABLES,
    sa.Column("trial_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.String, primary_key=True),
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
LINES = sa.Table(
    "lines",
    TABLES,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("task_id", sa.String, nullable=False),
    sa.Column("allocation_id", sa.String, nullable=False),
    sa.Column("worker_id", sa.String, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("level", sa.String),
    sa.Column("rank", sa.Integer),
    sa.Column("source", sa.String, nullable=False),
    sa.Column("stdtype", sa.String, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Index("lines_by_task", "task_id", "id"),
)


def project(connection: sa.Connection, records: Mapping[Key, Any], events: Sequence[Recorded]) -> None:
    """Write what the folded batches of one commit add."""
    lines: list[dict[str, Any]] = []
    writer = _ReportWriter(connection)
    for recorded in events:
        event = recorded.event
        if isinstance(event, Judged) and event.accepted:
            if isinstance(event.batch, LogBatch):
                lines += _lines(event.batch, recorded.position)
            else:
                writer.write(event.batch, event, recorded.position)
    writer.finish()
    if lines:
        connection.execute(sa.insert(LINES), lines)


def _lines(batch: LogBatch, position: int) -> Iterable[dict[str, Any]]:
    for index, line in enumerate(batch.lines):
        yield {
            "id": position * LINES_PER_BATCH + index,
            "task_id": batch.task_id,
            "allocation_id": batch.allocation_id,
            "worker_id": batch.worker_id,
            "at": line.at,
            "level": line.level,
            "rank": line.rank,
            "source": batch.source,
            "stdtype": line.stdtype,
            "text": line.text,
        }


class _ReportWriter:
    """Gathers the inserts of one commit; whatever needs what is stored writes that first."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._rows: list[dict[str, Any]] = []
        self._trials: dict[int, dict[str, Any]] = {}
        self._summaries: dict[tuple[int, str, str], Summary] = {}

    def write(self, batch: ReportBatch, judged: Judged, position: int) -> None:
        """Add one batch's accepted rows."""
        for row in judged.rows:
            if judged.archive is not None and row is judged.rows[0]:
                self._archive(batch.trial_id, judged.archive)
            if row.merges:
                self._merge(batch, row)
            else:
                self._rows.append(_row(batch, row, position))
            self._summarize(batch.trial_id, row)
            self._note(batch, row.steps)

    def _note(self, batch: ReportBatch, steps: int) -> None:
        known = self._trials.get(batch.trial_id) or self._stored_trial(batch)
        self._trials[batch.trial_id] = known | {"total_batches": max(known["total_batches"], steps)}

    def _stored_trial(self, batch: ReportBatch) -> dict[str, Any]:
        query = sa.select(TRIALS).where(TRIALS.c.trial_id == batch.trial_id)
        found = self._connection.execute(query).mappings().first()
        fresh = {
            "trial_id": batch.trial_id,
            "experiment_id": batch.experiment_id,
            "smaller_is_better": batch.smaller_is_better,
            "total_batches": 0,
        }
        return dict(found) if found else fresh

    def _summarize(self, trial_id: int, row: Row) -> None:
        for name, value in row.metrics.items():
            key = (trial_id, row.group, name)
            known = self._summaries.get(key) or self._stored_summary(key)
            self._summaries[key] = add(known, row.steps, value)

    def _stored_summary(self, key: tuple[int, str, str]) -> Summary:
        columns = SUMMARIES.c
        query = sa.select(columns.body).where(
            columns.trial_id == key[0], columns.kind == key[1], columns.name == key[2]
        )
        body = self._connection.execute(query).scalar()
        return msgspec.json.decode(body, type=Summary) if body else Summary()

    def _merge(self, batch: ReportBatch, row: Row) -> None:
        self._flush_rows()
        columns = REPORTS.c
        which = sa.and_(
            columns.trial_id == batch.trial_id,
            columns.run == batch.run,
            columns.kind == row.group,
            columns.steps == row.steps,
        )
        found = self._connection.execute(sa.select(REPORTS).where(which)).mappings().first()
        if found is None:
            return
        merged = row.metrics | msgspec.json.decode(found["metrics"])
        changes: dict[str, Any] = {"metrics": msgspec.json.encode(merged)}
        if row.batch_metrics is not None and found["batch_metrics"] is None:
            changes["batch_metrics"] = msgspec.json.encode(row.batch_metrics)
        if row.group == VALIDATION:
            changes["metric"] = finite(merged.get(batch.searcher_metric))
        self._connection.execute(sa.update(REPORTS).where(REPORTS.c.id == found["id"]).values(**changes))

    def _archive(self, trial_id: int, archive: Archive) -> None:
        """Outdated rows of earlier runs stay readable, but count no more."""
        self.finish()
        columns = REPORTS.c
        same = sa.and_(columns.kind == archive.group, columns.steps >= archive.steps)
        other = sa.and_(columns.kind != archive.group, columns.steps > archive.steps)
        outdated = sa.and_(
            columns.trial_id == trial_id,
            columns.run < archive.run,
            columns.archived.is_(False),
            sa.or_(same, other),
        )
        done = self._connection.execute(sa.update(REPORTS).where(outdated).values(archived=True))
        if done.rowcount:
            self._summarize_anew(trial_id)

    def _summarize_anew(self, trial_id: int) -> None:
        self._connection.execute(sa.delete(SUMMARIES).where(SUMMARIES.c.trial_id == trial_id))
        columns = REPORTS.c
        query = (
            sa.select(columns.kind, columns.steps, columns.metrics)
            .where(columns.trial_id == trial_id, columns.archived.is_(False))
            .order_by(columns.id)
        )
        values: dict[tuple[str, str], list[tuple[int, Any]]] = {}
        for kind, steps, body in self._connection.execute(query):
            for name, value in msgspec.json.decode(body).items():
                values.setdefault((kind, name), []).append((steps, value))
        for (kind, name), found in values.items():
            self._summaries[trial_id, kind, name] = from_values(found)

    def _flush_rows(self) -> None:
        if self._rows:
            self._connection.execute(sa.insert(REPORTS), self._rows)
            self._rows = []

    def finish(self) -> None:
        """Write everything gathered so far."""
        self._flush_rows()
        upsert(self._connection, TRIALS, list(self._trials.values()))
        bodies = [
            {"trial_id": trial_id, "kind": kind, "name": name, "body": msgspec.json.encode(summary)}
            for (trial_id, kind, name), summary in self._summaries.items()
        ]
        upsert(self._connection, SUMMARIES, bodies)
        self._trials, self._summaries = {}, {}


def _row(batch: ReportBatch, row: Row, position: int) -> dict[str, Any]:
    batched = None if row.batch_metrics is None else msgspec.json.encode(row.batch_metrics)
    is_validation = row.group == VALIDATION
    return {
        "id": position * ROWS_PER_BATCH + row.index,
        "trial_id": batch.trial_id,
        "run": batch.run,
        "kind": row.group,
        "steps": row.steps,
        "at": row.at,
        "metrics": msgspec.json.encode(row.metrics),
        "batch_metrics": batched,
        "metric": finite(row.metrics.get(batch.searcher_metric)) if is_validation else None,
        "archived": False,
    }
