"""Checkpoints (REST spec, section 5)."""

from __future__ import annotations

from typing import Any

from det_contracts.expconf import masked
from services.catalogue.api_values import instant, long
from services.catalogue.domain import Checkpoint, State
from services.catalogue.peers import Report


def checkpoint(
    one: Checkpoint, state: State, *, training: Report | None = None, validation: Report | None = None
) -> dict[str, Any]:
    """A checkpoint, with the metrics reported at its step."""
    return {
        "uuid": one.uuid,
        "taskId": one.task_id,
        "allocationId": one.allocation_id,
        "reportTime": instant(one.at),
        "resources": {path: long(size) for path, size in one.resources.items()},
        "metadata": one.metadata,
        "state": f"STATE_{one.state}",
        "training": {
            "trialId": one.trial_id,
            "experimentId": one.experiment_id,
            "experimentConfig": masked(state.submissions[one.experiment_id].config),
            "hparams": state.trials[one.trial_id].hparams,
            "trainingMetrics": _metrics(training),
            "validationMetrics": _metrics(validation),
            "searcherMetric": one.metric,
        },
    }


def _metrics(row: Report | None) -> dict[str, Any]:
    return {"avgMetrics": row.metrics if row else {}, "batchMetrics": []}
