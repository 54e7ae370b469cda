"""Checkpoints (REST spec, section 5)."""

from __future__ import annotations

from typing import Any

from det_contracts.expconf import mask_secrets
from services.catalogue.api_values import format_int64, format_time
from services.catalogue.checkpoint_source import allocation_of
from services.catalogue.domain import Checkpoint, State
from services.catalogue.peers import Report


def checkpoint(
    record: Checkpoint, state: State, *, training: Report | None = None, validation: Report | None = None
) -> dict[str, Any]:
    """A checkpoint, with the metrics reported at its step."""
    return {
        "uuid": record.uuid,
        "taskId": state.trials[record.trial_id].task_id,
        "allocationId": allocation_of(state, record),
        "reportTime": format_time(record.at),
        "resources": {path: format_int64(size) for path, size in record.resources.items()},
        "metadata": record.metadata,
        "state": f"STATE_{record.state}",
        "training": {
            "trialId": record.trial_id,
            "experimentId": record.experiment_id,
            "experimentConfig": mask_secrets(state.submissions[record.experiment_id].config),
            "hparams": state.trials[record.trial_id].hparams,
            "trainingMetrics": _metrics(training),
            "validationMetrics": _metrics(validation),
            "searcherMetric": record.metric,
        },
    }


def _metrics(row: Report | None) -> dict[str, Any]:
    return {"avgMetrics": row.metrics if row else {}, "batchMetrics": []}
