"""Converts single reports to the columnar form in which they are sent (contracts, `reports`)."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from det_contracts.reports import Series
from determined.transport.protocol import MetricReport

Timed = tuple[float, MetricReport]
"""A report and the time it was made, in seconds since the epoch (UTC)."""


def to_series(reports: Iterable[Timed]) -> list[Series]:
    """Group consecutive reports with the same group and metric names, keeping their order."""
    return [_series(list(same)) for _, same in groupby(reports, _shape)]


def _shape(timed: Timed) -> tuple[Any, ...]:
    report = timed[1]
    return report.group, report.batch_metrics is not None, tuple(report.metrics)


def _series(timed: Sequence[Timed]) -> Series:
    """Build one series. Avoids loops over values, because the sending thread holds the interpreter lock."""
    reports = [report for _, report in timed]
    first = reports[0]
    values = zip(*(report.metrics.values() for report in reports), strict=True)
    return Series(
        first.group,
        [report.steps_completed for report in reports],
        [at for at, _ in timed],
        dict(zip(first.metrics, map(list, values), strict=True)),
        [] if first.batch_metrics is None else [report.batch_metrics for report in reports],
    )
