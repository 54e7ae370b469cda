"""What the metrics service answers from its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import sqlalchemy as sa

from det_contracts.queries import (
    BestValidation,
    MetricNames,
    ReportedSteps,
    Reports,
    Series,
    TrialStatistics,
    TrialSummaries,
    ValidationHistory,
)
from services.metrics.curves import metric_names, reported_steps, series, validation_history
from services.metrics.domain import VALIDATION
from services.metrics.logs import queries as logs
from services.metrics.paging import page_limit, page_of, streamed
from services.metrics.statistics import trial_statistics
from services.metrics.summary import Summary
from services.metrics.tables import REPORTS, SUMMARIES, TRIALS

C = REPORTS.c
_statistics = msgspec.json.Decoder(dict[str, Summary])


def trial_summaries(connection: sa.Connection, query: TrialSummaries) -> dict[str, Any]:
    """Totals, best and latest validation and statistics of each trial that has reported."""
    found = connection.execute(sa.select(TRIALS).where(TRIALS.c.trial_id.in_(query.trial_ids))).mappings()
    return {str(row["trial_id"]): _summary(connection, row) for row in found.all()}


def _summary(connection: sa.Connection, trial: Any) -> dict[str, Any]:
    validations = sa.select(REPORTS).where(
        C.trial_id == trial["trial_id"], C.kind == VALIDATION, C.archived.is_(False), C.ranked.is_(True)
    )
    better = C.metric.asc() if trial["smaller_is_better"] else C.metric.desc()
    ranked = validations.where(C.metric.is_not(None)).order_by(better, C.id)
    best = connection.execute(ranked.limit(1)).mappings().first()
    newest = validations.order_by(C.steps.desc(), C.id.desc())
    latest = connection.execute(newest.limit(1)).mappings().first()
    query = sa.select(SUMMARIES.c.kind, SUMMARIES.c.body).where(SUMMARIES.c.trial_id == trial["trial_id"])
    summary = {
        kind: {name: found.plain() for name, found in sorted(_statistics.decode(body).items())}
        for kind, body in connection.execute(query.order_by(SUMMARIES.c.kind))
    }
    return {
        "total_batches": trial["total_batches"],
        "best_validation": _validation(best),
        "latest_validation": _validation(latest),
        "summary": summary,
    }


def _validation(row: Any) -> dict[str, Any] | None:
    if row is None:
        return None
    return {
        "steps_completed": row["steps"],
        "at": row["at"],
        "run": row["run"],
        "metrics": msgspec.json.decode(row["metrics"]),
        "metric": row["metric"],
    }


def reports(connection: sa.Connection, query: Reports) -> dict[str, Any]:
    """A page of reports in order of trial, run, steps."""
    limit = page_limit(query.limit)
    rows = _rows(connection, query, limit)
    found, more = page_of(rows, lambda row: len(row["metrics"]) + len(row["batch_metrics"] or b""), limit)
    return {"rows": [_report(row) for row in found], "more": more}


def _rows(connection: sa.Connection, query: Reports, limit: int) -> Iterable[Any]:
    """Trial by trial, so that the index leads straight to where the page before ended."""
    order = (C.run, C.steps, C.id)
    for trial_id in sorted(set(query.trial_ids)):
        chosen = sa.select(REPORTS).where(C.trial_id == trial_id)
        if query.after is not None and trial_id <= query.after[0]:
            if trial_id < query.after[0]:
                continue
            chosen = chosen.where(sa.tuple_(*order) > sa.tuple_(*map(sa.literal, query.after[1:])))
        if query.group is not None:
            chosen = chosen.where(C.kind == query.group)
        if not query.archived:
            chosen = chosen.where(C.archived.is_(False))
        for row in streamed(connection, chosen.order_by(*order).limit(limit)):
            yield row
            limit -= 1
        if limit == 0:
            return


def _report(row: Any) -> dict[str, Any]:
    batched = row["batch_metrics"]
    return {
        "id": row["id"],
        "trial_id": row["trial_id"],
        "run": row["run"],
        "group": row["kind"],
        "steps_completed": row["steps"],
        "at": row["at"],
        "metrics": msgspec.json.decode(row["metrics"]),
        "batch_metrics": None if batched is None else msgspec.json.decode(batched),
        "archived": bool(row["archived"]),
    }


def best_validation(connection: sa.Connection, query: BestValidation) -> float | None:
    """The best searcher metric over the trials of an experiment."""
    best = sa.func.min(C.metric) if query.smaller_is_better else sa.func.max(C.metric)
    trials = sa.select(TRIALS.c.trial_id).where(TRIALS.c.experiment_id == query.experiment_id)
    chosen = sa.select(best).where(C.trial_id.in_(trials), C.kind == VALIDATION, C.archived.is_(False))
    found: float | None = connection.execute(chosen).scalar()
    return found


READS: dict[Any, Callable[[sa.Connection, Any], Any]] = {
    **logs.READS,
    TrialSummaries: trial_summaries,
    TrialStatistics: trial_statistics,
    Reports: reports,
    BestValidation: best_validation,
    MetricNames: metric_names,
    ReportedSteps: reported_steps,
    Series: series,
    ValidationHistory: validation_history,
}
