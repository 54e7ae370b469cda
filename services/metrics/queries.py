"""Queries that the metrics service answers from its tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from det_contracts.queries import (
    BestValidation,
    Buckets,
    MetricNames,
    ReportedSteps,
    Reports,
    ReportWindow,
    Series,
    StoredLines,
    TrialStatistics,
    TrialSummaries,
    ValidationHistory,
)
from services.metrics.logs import queries as logs
from services.metrics.logs.retention import stored_lines
from services.metrics.reports.buckets import buckets
from services.metrics.reports.curves import reported_steps, series
from services.metrics.reports.ranking import best_validation, validation_history
from services.metrics.reports.rows import report_window, reports
from services.metrics.reports.statistics import metric_names, trial_statistics, trial_summaries

READS: dict[Any, Callable[[sa.Connection, Any], Any]] = {
    **logs.READS,
    TrialSummaries: trial_summaries,
    TrialStatistics: trial_statistics,
    Reports: reports,
    ReportWindow: report_window,
    BestValidation: best_validation,
    MetricNames: metric_names,
    ReportedSteps: reported_steps,
    Series: series,
    Buckets: buckets,
    ValidationHistory: validation_history,
    StoredLines: stored_lines,
}
