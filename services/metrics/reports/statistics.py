"""Totals of trials and statistics of their metrics, as they grow."""

from __future__ import annotations

from typing import Any

import msgspec
import sqlalchemy as sa

from det_contracts.queries import MetricNames, TrialStatistics, TrialSummaries
from det_contracts.reports import ReportBatch
from services.kit.database import upsert
from services.metrics.domain import Piece
from services.metrics.reports.chunks import batches
from services.metrics.reports.ranking import best_and_latest
from services.metrics.reports.strands import strands_of, values_of
from services.metrics.reports.summary import Summary, extend
from services.metrics.reports.tables import SUMMARIES, TRIALS

C = SUMMARIES.c
Statistics = dict[str, Summary]
"""By metric name."""
_statistics = msgspec.json.Decoder(Statistics)
_names = msgspec.json.Decoder(dict[str, msgspec.Raw])
_one = msgspec.json.Decoder(Summary)


class Totals:
    """Gathers what one commit adds to them."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._trials: dict[int, dict[str, Any]] = {}
        self._statistics: dict[tuple[int, str], Statistics] = {}

    def count(self, batch: ReportBatch, piece: Piece) -> None:
        """Add accepted reports."""
        statistics = self._statistics_of(batch.trial_id, piece.group)
        for name, values in piece.columns.items():
            statistics[name] = extend(statistics.get(name, Summary()), piece.steps, values)
        trial = self._trial(batch)
        trial["total_batches"] = max(trial["total_batches"], *piece.steps)

    def finish(self) -> None:
        """Write everything gathered so far."""
        upsert(self._connection, TRIALS, list(self._trials.values()))
        bodies = [
            {"trial_id": trial_id, "kind": kind, "body": msgspec.json.encode(found)}
            for (trial_id, kind), found in self._statistics.items()
        ]
        upsert(self._connection, SUMMARIES, bodies)
        self._trials, self._statistics = {}, {}

    def count_anew(self, trial_id: int) -> None:
        """Statistics of what is not archived; nothing may be gathered."""
        self._connection.execute(sa.delete(SUMMARIES).where(C.trial_id == trial_id))
        for strand in strands_of(self._connection, [trial_id]):
            # Over the whole strand at once: how it lies in chunks must not show in a sum.
            for name, steps, values in values_of(self._connection, strand):
                statistics = self._statistics.setdefault((trial_id, strand.kind), {})
                statistics[name] = extend(statistics.get(name, Summary()), steps, values)

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
            query = sa.select(C.body).where(C.trial_id == trial_id, C.kind == kind)
            body = self._connection.execute(query).scalar()
            self._statistics[trial_id, kind] = _statistics.decode(body) if body else {}
        return self._statistics[trial_id, kind]


def trial_summaries(connection: sa.Connection, query: TrialSummaries) -> dict[str, Any]:
    """Totals, best and latest validation and statistics of each trial that has reported."""
    found = connection.execute(sa.select(TRIALS).where(TRIALS.c.trial_id.in_(query.trial_ids))).mappings()
    return {str(row["trial_id"]): _summary(connection, row) for row in found.all()}


def _summary(connection: sa.Connection, trial: Any) -> dict[str, Any]:
    best, latest = best_and_latest(connection, trial)
    query = sa.select(C.kind, C.body).where(C.trial_id == trial["trial_id"]).order_by(C.kind)
    summary = {
        kind: {name: found.plain() for name, found in sorted(_statistics.decode(body).items())}
        for kind, body in connection.execute(query)
    }
    return {
        "total_batches": trial["total_batches"],
        "best_validation": best,
        "latest_validation": latest,
        "summary": summary,
    }


def metric_names(connection: sa.Connection, query: MetricNames) -> dict[str, list[str]]:
    """Names by group over some experiments."""
    trials = sa.select(TRIALS.c.trial_id).where(TRIALS.c.experiment_id.in_(query.experiment_ids))
    chosen = sa.select(C.kind, C.body).where(C.trial_id.in_(trials))
    found: dict[str, set[str]] = {}
    for kind, body in connection.execute(chosen):
        found.setdefault(kind, set()).update(_names.decode(body))
    return {kind: sorted(names) for kind, names in sorted(found.items())}


def trial_statistics(connection: sa.Connection, query: TrialStatistics) -> list[tuple[int, dict[str, Any]]]:
    """Trials that reported the metric, each with its statistics."""
    found = []
    for ids in batches(query.trial_ids):
        chosen = sa.select(C.trial_id, C.body).where(C.trial_id.in_(ids), C.kind == query.group)
        for trial_id, body in connection.execute(chosen):
            own = _names.decode(body).get(query.name)
            if own is not None:
                found.append((trial_id, _one.decode(own).plain()))
    return found
