"""Turns single reports into the columns that travel (contracts, `reports`)."""

from collections.abc import Iterable
from typing import Any

from det_contracts.reports import Series
from determined.transport.protocol import MetricReport

Timed = tuple[float, MetricReport]
"""A report and when it was made: seconds since the epoch, UTC."""


def to_series(reports: Iterable[Timed]) -> list[Series]:
    """Group consecutive reports that share group and metric names; the order of reports is kept."""
    found: list[Series] = []
    shape: tuple[Any, ...] = ()
    for at, report in reports:
        batched = report.batch_metrics is not None
        this = (report.group, batched, tuple(report.metrics))
        if this != shape:
            shape = this
            found.append(Series(report.group, [], [], {name: [] for name in report.metrics}, []))
        series = found[-1]
        series.steps.append(report.steps_completed)
        series.at.append(at)
        for name, value in report.metrics.items():
            series.columns[name].append(value)
        if batched:
            series.batch_metrics.append(report.batch_metrics)
    return found
