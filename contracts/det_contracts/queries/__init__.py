"""Queries to owners. Each docstring describes the `value` of the answer."""

from __future__ import annotations

import msgspec

from det_contracts import subjects
from det_contracts.queries.checkpoints import Checkpoints, PreviewRetention, StorageRefusal, StorageUsed
from det_contracts.queries.metrics import (
    BestValidation,
    Buckets,
    LogCause,
    LogFields,
    LogPage,
    MetricNames,
    ReportedSteps,
    Reports,
    ReportVerdict,
    ReportWindow,
    Series,
    StoredLines,
    TrialStatistics,
    TrialSummaries,
    ValidationHistory,
)
from det_contracts.queries.scheduler import (
    ClusterState,
    Fits,
    Jobs,
    JobsUsed,
    Pools,
    PreviewChange,
    Provisioning,
    Waiting,
)
from det_contracts.queries.searcher import (
    PreviewSearch,
    SearcherEvents,
    SearchProgress,
    SearchRungs,
    SearchState,
)
from det_contracts.queries.webhooks import Deliveries, Webhooks

OWNER_OF: dict[type, str] = {
    SearchProgress: "searcher",
    SearchState: "searcher",
    PreviewSearch: "searcher",
    SearchRungs: "searcher",
    SearcherEvents: "searcher",
    Waiting: "scheduler",
    Jobs: "scheduler",
    PreviewChange: "scheduler",
    Pools: "scheduler",
    Provisioning: "scheduler",
    Fits: "scheduler",
    ClusterState: "scheduler",
    JobsUsed: "scheduler",
    TrialSummaries: "metrics",
    TrialStatistics: "metrics",
    Reports: "metrics",
    ReportWindow: "metrics",
    ReportVerdict: "metrics",
    LogPage: "metrics",
    BestValidation: "metrics",
    MetricNames: "metrics",
    ReportedSteps: "metrics",
    Series: "metrics",
    Buckets: "metrics",
    ValidationHistory: "metrics",
    LogFields: "metrics",
    LogCause: "metrics",
    StoredLines: "metrics",
    StorageUsed: "checkpoints",
    StorageRefusal: "checkpoints",
    PreviewRetention: "checkpoints",
    Checkpoints: "checkpoints",
    Webhooks: "webhooks",
    Deliveries: "webhooks",
}


class Ask(msgspec.Struct, frozen=True):
    """A query message. It is answered once the owner has read `stream` up to `min_position`.

    Answers from tables can wait only for CONTROL.
    """

    body: msgspec.Raw
    min_position: int = 0
    stream: str = subjects.CONTROL


__all__ = [
    "OWNER_OF",
    "Ask",
    "BestValidation",
    "Buckets",
    "Checkpoints",
    "ClusterState",
    "Deliveries",
    "Fits",
    "Jobs",
    "JobsUsed",
    "LogCause",
    "LogFields",
    "LogPage",
    "MetricNames",
    "Pools",
    "PreviewChange",
    "PreviewRetention",
    "PreviewSearch",
    "Provisioning",
    "ReportVerdict",
    "ReportWindow",
    "ReportedSteps",
    "Reports",
    "SearchProgress",
    "SearchRungs",
    "SearchState",
    "SearcherEvents",
    "Series",
    "StorageRefusal",
    "StorageUsed",
    "StoredLines",
    "TrialStatistics",
    "TrialSummaries",
    "ValidationHistory",
    "Waiting",
    "Webhooks",
]
