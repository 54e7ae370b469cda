"""What the metrics service answers from its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import sqlalchemy as sa

from det_contracts import subjects
from det_contracts.queries import (
    BestValidation,
    LogFields,
    LogPage,
    MetricNames,
    ReportedSteps,
    Reports,
    Series,
    TrialSummaries,
    ValidationHistory,
)
from services.kit.database import POSITIONS
from services.metrics.curves import metric_names, reported_steps, series, validation_history
from services.metrics.domain import VALIDATION
from services.metrics.summary import Summary
from services.metrics.tables import LINES, LINES_PER_BATCH, REPORTS, SUMMARIES, TRIALS
from services.metrics.values import storable

C = REPORTS.c
_statistics = msgspec.json.Decoder(dict[str, Summary])
PAGE_ROWS = 10_000
PAGE_BYTES = 2 * 1024 * 1024
"""Most of an answer, well below what the broker takes in one message."""
ROW_OVERHEAD_BYTES = 300


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
    limit = _limit(query.limit)
    rows = _rows(connection, query, limit)
    found, more = _page(rows, lambda row: len(row["metrics"]) + len(row["batch_metrics"] or b""), limit)
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
        for row in _stream(connection, chosen.order_by(*order).limit(limit)):
            yield row
            limit -= 1
        if limit == 0:
            return


def _stream(connection: sa.Connection, query: sa.Select[Any]) -> Iterable[Any]:
    """Rows as they are taken: a page may end by its bytes long before its limit."""
    with connection.execute(query.execution_options(yield_per=100)) as result:
        yield from result.mappings()


def _limit(wanted: int) -> int:
    """Rows of a page; 0 asks for as many as fit."""
    return min(wanted, PAGE_ROWS) if wanted > 0 else PAGE_ROWS


def _page(rows: Iterable[Any], size: Callable[[Any], int], limit: int) -> tuple[list[Any], bool]:
    """As many rows as one answer takes, at least one; and whether there may be more."""
    found: list[Any] = []
    total = 0
    for row in rows:
        total += size(row) + ROW_OVERHEAD_BYTES
        if found and total > PAGE_BYTES:
            return found, True
        found.append(row)
    return found, len(found) == limit


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


def log_page(connection: sa.Connection, query: LogPage) -> dict[str, Any]:
    """A page of log lines; `through` is the position of LOGS that the tables are complete up to."""
    through = sa.select(POSITIONS.c.position).where(
        POSITIONS.c.owner == "metrics", POSITIONS.c.stream == subjects.LOGS
    )
    # First the position, then no line beyond it: a commit in between must not show a part of what it adds.
    position = connection.execute(through).scalar() or 0
    order = LINES.c.id.desc() if query.descending else LINES.c.id.asc()
    known = LINES.c.id < (position + 1) * LINES_PER_BATCH
    chosen = sa.select(LINES).where(known, *_log_filters(query, connection.dialect.name)).order_by(order)
    limit = _limit(query.limit)
    rows = _stream(connection, chosen.limit(limit))
    found, more = _page(rows, lambda row: len(row["text"].encode()), limit)
    return {"lines": [dict(row) for row in found], "more": more, "through": position}


def _log_filters(query: LogPage, dialect: str) -> list[sa.ColumnElement[bool]]:
    columns = LINES.c
    found: list[sa.ColumnElement[bool]] = [columns.task_id == query.task_id]
    if query.after_id:
        found.append(columns.id < query.after_id if query.descending else columns.id > query.after_id)
    lists = {
        columns.allocation_id: query.allocation_ids,
        columns.worker_id: query.worker_ids,
        columns.level: query.levels,
        columns.stdtype: query.stdtypes,
        columns.source: query.sources,
    }
    found += [column.in_(wanted) for column, wanted in lists.items() if wanted]
    if query.ranks:
        named = columns.rank.in_([rank for rank in query.ranks if rank >= 0])
        found.append(sa.or_(named, columns.rank.is_(None)) if -1 in query.ranks else named)
    if query.before_at is not None:
        found.append(columns.at <= query.before_at)
    if query.after_at is not None:
        found.append(columns.at > query.after_at)
    if query.text:
        # Not LIKE: SQLite's takes upper and lower case for the same.
        place = sa.func.instr if dialect == "sqlite" else sa.func.strpos
        found.append(place(columns.text, storable(query.text)) > 0)
    return found


def log_fields(connection: sa.Connection, query: LogFields) -> dict[str, Any]:
    """Where the lines of a task came from."""
    columns = (LINES.c.allocation_id, LINES.c.worker_id, LINES.c.rank, LINES.c.stdtype, LINES.c.source)
    rows = connection.execute(sa.select(*columns).where(LINES.c.task_id == query.task_id).distinct()).all()
    ranks = {row.rank for row in rows}
    return {
        "places": sorted({(row.allocation_id, row.worker_id) for row in rows}),
        "ranks": sorted(ranks, key=lambda rank: -1 if rank is None else rank),
        "stdtypes": sorted({row.stdtype for row in rows}),
        "sources": sorted({row.source for row in rows}),
    }


def best_validation(connection: sa.Connection, query: BestValidation) -> float | None:
    """The best searcher metric over the trials of an experiment."""
    best = sa.func.min(C.metric) if query.smaller_is_better else sa.func.max(C.metric)
    trials = sa.select(TRIALS.c.trial_id).where(TRIALS.c.experiment_id == query.experiment_id)
    chosen = sa.select(best).where(C.trial_id.in_(trials), C.kind == VALIDATION, C.archived.is_(False))
    found: float | None = connection.execute(chosen).scalar()
    return found


READS: dict[Any, Callable[[sa.Connection, Any], Any]] = {
    TrialSummaries: trial_summaries,
    Reports: reports,
    LogPage: log_page,
    LogFields: log_fields,
    BestValidation: best_validation,
    MetricNames: metric_names,
    ReportedSteps: reported_steps,
    Series: series,
    ValidationHistory: validation_history,
}
