"""Reports and workloads of trials (REST spec, section 4)."""

from __future__ import annotations

from typing import Any

from services.catalogue.api_values import format_int64, format_time
from services.catalogue.domain import Checkpoint
from services.catalogue.peers import Report, ReportedValidation

VALIDATION = "validation"


def report(row: Report) -> dict[str, Any]:
    """One row of a metrics stream. `group` is our addition."""
    return {
        "trialId": row.trial_id,
        "endTime": format_time(row.at),
        "metrics": {**_values(row.metrics, row.batch_metrics), **_client_metrics(row)},
        "totalBatches": row.steps_completed,
        "archived": row.archived,
        "id": row.id,
        "trialRunId": row.run,
        "group": row.group,
    }


def _client_metrics(row: Report) -> dict[str, Any]:
    """The metrics again, under the names that the published client reads."""
    if row.group == VALIDATION:
        return {"validation_metrics": row.metrics}
    return {"avg_metrics": row.metrics, "batch_metrics": row.batch_metrics}


def _values(metrics: dict[str, Any], batches: Any) -> dict[str, Any]:
    return {"avgMetrics": metrics, "batchMetrics": batches or []}


def validation_summary(validation: ReportedValidation) -> dict[str, Any]:
    """A validation of a trial."""
    return {
        "endTime": format_time(validation.at),
        "state": "STATE_COMPLETED",
        "metrics": _values(validation.metrics, None),
        "totalBatches": validation.steps_completed,
        "numInputs": 0,
    }


def workload(row: Report, *, with_batches: bool) -> dict[str, Any]:
    """A report as a workload. Every group other than validation counts as training."""
    kind = "validation" if row.group == VALIDATION else "training"
    return {
        kind: {
            "endTime": format_time(row.at),
            "state": "STATE_COMPLETED",
            "metrics": _values(row.metrics, row.batch_metrics if with_batches else None),
            "totalBatches": row.steps_completed,
            "numInputs": 0,
            "group": row.group,
        }
    }


def checkpoint_workload(record: Checkpoint) -> dict[str, Any]:
    """A checkpoint as a workload. Trials show their best checkpoint in this form, too."""
    return {
        "uuid": record.uuid,
        "endTime": format_time(record.at),
        "state": f"STATE_{record.state}",
        "resources": {path: format_int64(size) for path, size in record.resources.items()},
        "totalBatches": record.steps,
        "metadata": record.metadata,
    }
