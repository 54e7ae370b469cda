"""Reports as curves: which metrics there are, where they were reported, and how they ran."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import sqlalchemy as sa

from det_contracts.queries import MetricNames, ReportedSteps, Series, ValidationHistory
from services.metrics.domain import VALIDATION
from services.metrics.tables import REPORTS, SUMMARIES, TRIALS
from services.metrics.thinning import Nearest, Point, Thinner
from services.metrics.values import number

C = REPORTS.c
STEPS_PER_PAGE = 50_000
_names = msgspec.json.Decoder(dict[str, msgspec.Raw])


def metric_names(connection: sa.Connection, query: MetricNames) -> dict[str, list[str]]:
    """Names by group, from the statistics."""
    trials = sa.select(TRIALS.c.trial_id).where(TRIALS.c.experiment_id.in_(query.experiment_ids))
    chosen = sa.select(SUMMARIES.c.kind, SUMMARIES.c.body).where(SUMMARIES.c.trial_id.in_(trials))
    found: dict[str, set[str]] = {}
    for kind, body in connection.execute(chosen):
        found.setdefault(kind, set()).update(_names.decode(body))
    return {kind: sorted(names) for kind, names in sorted(found.items())}


def reported_steps(connection: sa.Connection, query: ReportedSteps) -> dict[str, Any]:
    """Steps at which any trial of an experiment reported a metric."""
    trials = sa.select(TRIALS.c.trial_id).where(TRIALS.c.experiment_id == query.experiment_id)
    chosen = sa.select(C.steps, C.metrics).where(
        C.trial_id.in_(trials), C.kind == query.group, C.archived.is_(False), C.steps > query.after
    )
    found: set[int] = set()
    for steps, body in _stream(connection, chosen):
        if steps not in found and _numbers(body, [query.metric]):
            found.add(steps)
    page = sorted(found)[:STEPS_PER_PAGE]
    return {"steps": page, "more": len(page) < len(found)}


def series(connection: sa.Connection, query: Series) -> list[dict[str, Any]]:
    """Curves of trials, thinned where they are long."""
    found = []
    for trial_id in dict.fromkeys(query.trial_ids):
        for group, thinner in sorted(_curves(connection, query, trial_id).items()):
            found.append({"trial_id": trial_id, "group": group, "points": thinner.points()})
    return found


def _curves(connection: sa.Connection, query: Series, trial_id: int) -> dict[str, Thinner | Nearest]:
    window = [C.trial_id == trial_id, C.steps >= query.first]
    if query.last is not None:
        window.append(C.steps <= query.last)
    bounds = sa.select(sa.func.min(C.steps), sa.func.max(C.steps)).where(*window)
    first, last = connection.execute(bounds).one()
    chosen = sa.select(C.kind, C.steps, C.at, C.metrics).where(*window, C.archived.is_(False))
    if query.group is not None:
        chosen = chosen.where(C.kind == query.group)
    found: dict[str, Thinner | Nearest] = {}
    for kind, steps, at, body in _stream(connection, chosen.order_by(C.run, C.steps, C.id)):
        values = _numbers(body, query.names)
        if values:
            if kind not in found:
                found[kind] = _keeper(query, first, last)
            found[kind].add(Point(steps, at, _epoch(body), values))
    return found


def _keeper(query: Series, first: int, last: int) -> Thinner | Nearest:
    if query.nearest is not None:
        return Nearest(query.nearest)
    return Thinner(query.names, query.limit, first, last)


def _numbers(body: bytes, names: Iterable[str]) -> dict[str, Any]:
    """Those of the metrics that are numbers."""
    # Most reports of a group lack most names; decoding them all would take most of the time.
    if not any(msgspec.json.encode(name) in body for name in names):
        return {}
    values = msgspec.json.decode(body)
    return {name: values[name] for name in names if number(values.get(name)) is not None}


def _epoch(body: bytes) -> float | None:
    return number(msgspec.json.decode(body).get("epoch")) if b'"epoch"' in body else None


def _stream(connection: sa.Connection, query: sa.Select[Any]) -> Iterable[Any]:
    with connection.execute(query.execution_options(yield_per=1000)) as result:
        yield from result


def validation_history(connection: sa.Connection, query: ValidationHistory) -> list[dict[str, Any]]:
    """Each validation that was the best of its experiment when it was made."""
    trials = sa.select(TRIALS.c.trial_id).where(TRIALS.c.experiment_id == query.experiment_id)
    chosen = sa.select(C.trial_id, C.at, C.metric).where(
        C.trial_id.in_(trials), C.kind == VALIDATION, C.archived.is_(False), C.metric.is_not(None)
    )
    sign = 1 if query.smaller_is_better else -1
    best: float | None = None
    found = []
    for trial_id, at, metric in _stream(connection, chosen.order_by(C.at, C.id)):
        if best is None or sign * metric < sign * best:
            best = metric
            found.append({"trial_id": trial_id, "at": at, "metric": metric})
    return found
