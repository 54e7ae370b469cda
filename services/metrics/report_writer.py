"""Accepted reports as rows, with the totals and statistics that follow from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import sqlalchemy as sa

from det_contracts.reports import ReportBatch
from services.kit.database import upsert
from services.metrics.domain import VALIDATION, Archive, Judged, Row
from services.metrics.summary import Summary, add
from services.metrics.tables import REPORTS, ROWS_PER_BATCH, SUMMARIES, TRIALS
from services.metrics.values import finite

C = REPORTS.c
Statistics = dict[str, Summary]
"""By metric name."""
_statistics = msgspec.json.Decoder(Statistics)


class ReportWriter:
    """Gathers the rows of one commit; whatever needs what is stored writes that first."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._rows: list[dict[str, Any]] = []
        self._trials: dict[int, dict[str, Any]] = {}
        self._statistics: dict[tuple[int, str], Statistics] = {}

    def write(self, batch: ReportBatch, judged: Judged, position: int) -> None:
        """Add one batch's accepted rows; `position` is the batch's in REPORTS."""
        if judged.archive is not None:
            self._archive(batch.trial_id, judged.archive)
        for row in judged.rows:
            if row.merges:
                self._merge(batch, row)
            else:
                self._rows.append(_columns(batch, row, position))
            self._count(self._statistics_of(batch.trial_id, row.group), row.steps, row.metrics)
            trial = self._trial(batch)
            trial["total_batches"] = max(trial["total_batches"], row.steps)

    def finish(self) -> None:
        """Write everything gathered so far."""
        self._flush_rows()
        upsert(self._connection, TRIALS, list(self._trials.values()))
        bodies = [
            {"trial_id": trial_id, "kind": kind, "body": msgspec.json.encode(found)}
            for (trial_id, kind), found in self._statistics.items()
        ]
        upsert(self._connection, SUMMARIES, bodies)
        self._trials, self._statistics = {}, {}

    def _flush_rows(self) -> None:
        if self._rows:
            self._connection.execute(sa.insert(REPORTS), self._rows)
            self._rows = []

    def _trial(self, batch: ReportBatch) -> dict[str, Any]:
        if batch.trial_id not in self._trials:
            query = sa.select(TRIALS).where(TRIALS.c.trial_id == batch.trial_id)
            found = self._connection.execute(query).mappings().first()
            fresh = {
                "trial_id": batch.trial_id,
                "experiment_id": batch.experiment_id,
                "smaller_is_better": batch.smaller_is_better,
                "total_batches": 0,
            }
            self._trials[batch.trial_id] = dict(found) if found else fresh
        return self._trials[batch.trial_id]

    def _statistics_of(self, trial_id: int, kind: str) -> Statistics:
        if (trial_id, kind) not in self._statistics:
            columns = SUMMARIES.c
            query = sa.select(columns.body).where(columns.trial_id == trial_id, columns.kind == kind)
            body = self._connection.execute(query).scalar()
            self._statistics[trial_id, kind] = _statistics.decode(body) if body else {}
        return self._statistics[trial_id, kind]

    def _count(self, statistics: Statistics, steps: int, values: dict[str, Any]) -> None:
        for name, value in values.items():
            statistics[name] = add(statistics.get(name, Summary()), steps, value)

    def _merge(self, batch: ReportBatch, row: Row) -> None:
        self._flush_rows()
        same = (C.trial_id == batch.trial_id, C.run == batch.run, C.kind == row.group, C.steps == row.steps)
        found = self._connection.execute(sa.select(REPORTS).where(*same).order_by(C.id)).mappings().first()
        if found is None:
            return
        changes: dict[str, Any] = {
            "metrics": msgspec.json.encode(row.metrics | msgspec.json.decode(found["metrics"]))
        }
        if row.batch_metrics is not None:
            changes["batch_metrics"] = msgspec.json.encode(row.batch_metrics)
        if row.group == VALIDATION and batch.searcher_metric in row.metrics:
            changes |= {"ranked": True, "metric": finite(row.metrics[batch.searcher_metric])}
        self._connection.execute(sa.update(REPORTS).where(C.id == found["id"]).values(**changes))

    def _archive(self, trial_id: int, archive: Archive) -> None:
        """Outdated rows of earlier runs stay readable, but count no more (REST spec, section 4, rule 2)."""
        self.finish()
        same = sa.and_(C.kind == archive.group, C.steps >= archive.steps)
        other = sa.and_(C.kind != archive.group, C.steps > archive.steps)
        done = self._connection.execute(
            sa.update(REPORTS)
            .where(C.trial_id == trial_id, C.run < archive.run, C.archived.is_(False), sa.or_(same, other))
            .values(archived=True)
        )
        if done.rowcount:
            self._count_anew(trial_id)

    def _count_anew(self, trial_id: int) -> None:
        self._connection.execute(sa.delete(SUMMARIES).where(SUMMARIES.c.trial_id == trial_id))
        for kind, steps, body in self._live(trial_id):
            statistics = self._statistics.setdefault((trial_id, kind), {})
            self._count(statistics, steps, msgspec.json.decode(body))

    def _live(self, trial_id: int) -> Iterable[tuple[str, int, bytes]]:
        query = sa.select(C.kind, C.steps, C.metrics).where(C.trial_id == trial_id, C.archived.is_(False))
        paged = query.order_by(C.id).execution_options(yield_per=1000)
        for row in self._connection.execute(paged):
            yield row.kind, row.steps, row.metrics


def _columns(batch: ReportBatch, row: Row, position: int) -> dict[str, Any]:
    ranked = row.group == VALIDATION and batch.searcher_metric in row.metrics
    return {
        "id": position * ROWS_PER_BATCH + row.index,
        "trial_id": batch.trial_id,
        "run": batch.run,
        "kind": row.group,
        "steps": row.steps,
        "at": row.at,
        "metrics": msgspec.json.encode(row.metrics),
        "batch_metrics": None if row.batch_metrics is None else msgspec.json.encode(row.batch_metrics),
        "ranked": ranked,
        "metric": finite(row.metrics[batch.searcher_metric]) if ranked else None,
        "archived": False,
    }
