"""Reports as curves of individual points, thinned if they are long."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import numpy as np
import sqlalchemy as sa

from det_contracts.queries import ReportedSteps, Series
from services.metrics.reports.partitions import Partition, partitions_of
from services.metrics.reports.points import FARTHEST, Points, point_values, read_points
from services.metrics.reports.tables import TRIALS
from services.metrics.series.chunk import MICROSECONDS
from services.metrics.series.thinning import thin

STEPS_PER_PAGE = 50_000
EPOCH = "epoch"


def by_group(partitions: Iterable[Partition]) -> dict[str, list[Partition]]:
    """Partitions by group, sorted."""
    groups: dict[str, list[Partition]] = {}
    for partition in partitions:
        groups.setdefault(partition.kind, []).append(partition)
    return dict(sorted(groups.items()))


def reported_steps(connection: sa.Connection, query: ReportedSteps) -> dict[str, Any]:
    """Steps at which any trial of an experiment reported a metric."""
    trials = sa.select(TRIALS.c.trial_id).where(TRIALS.c.experiment_id == query.experiment_id)
    ids = [id for (id,) in connection.execute(trials)]
    partitions = sorted(partitions_of(connection, ids, query.group), key=lambda part: part.trial_id)
    steps, last = np.array([], np.int64), FARTHEST
    # Trial by trial, and nothing beyond the page: together they may have reported more than fits into memory.
    for _, of_trial in groupby(partitions, key=lambda part: part.trial_id):
        points = read_points(connection, list(of_trial), [query.metric], query.after + 1, last)
        steps = np.union1d(steps, points.with_any([query.metric]).steps)[: STEPS_PER_PAGE + 1]
        last = int(steps[-1]) if len(steps) > STEPS_PER_PAGE else FARTHEST
    return {"steps": steps[:STEPS_PER_PAGE].tolist(), "more": len(steps) > STEPS_PER_PAGE}


def series(connection: sa.Connection, query: Series) -> list[dict[str, Any]]:
    """Curves of trials by group. Each point has those of the metrics that were reported there."""
    curves = []
    for trial_id in dict.fromkeys(query.trial_ids):
        for group, partitions in by_group(partitions_of(connection, [trial_id], query.group)).items():
            points = _curve(connection, query, partitions)
            if points:
                curves.append({"trial_id": trial_id, "group": group, "points": points})
    return curves


def _curve(connection: sa.Connection, query: Series, partitions: list[Partition]) -> list[Any]:
    wanted = list(dict.fromkeys([*query.names, EPOCH]))
    mine = [partition for partition in partitions if not set(query.names).isdisjoint(partition.names)]
    last = FARTHEST if query.last is None else query.last
    points = read_points(connection, mine, wanted, query.first, last).with_any(query.names)
    if not len(points.steps):
        return []
    chosen = _chosen_indexes(points, query)
    return _to_answer(points.take(chosen), query.names)


def _chosen_indexes(points: Points, query: Series) -> Any:
    if query.nearest is not None:
        return np.array([np.abs(points.steps - query.nearest).argmin()])
    metrics = [points.metrics[name] for name in query.names]
    return thin(points.steps, ((column.numbers, has) for column, has in metrics), query.limit)


def _to_answer(points: Points, names: list[str]) -> list[Any]:
    epochs, has_epoch = points.metrics[EPOCH]
    values = point_values(points, names)
    rows = zip(points.steps.tolist(), points.at.tolist(), values, strict=True)
    return [
        (steps, at / MICROSECONDS, float(epochs.numbers[index]) if has_epoch[index] else None, metrics)
        for index, (steps, at, metrics) in enumerate(rows)
    ]
