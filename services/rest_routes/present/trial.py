"""Trials (REST spec, section 4)."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from services.catalogue.columns.column import columns_json
from services.catalogue.columns.trials import COLUMNS
from services.catalogue.display_state import trial_state
from services.catalogue.domain import Allocation, Checkpoint, State, Trial
from services.catalogue.peers import Summary
from services.rest_routes.present.metrics import checkpoint_workload, validation_summary

GROUP_NAMES = {"training": "avg_metrics", "validation": "validation_metrics"}
"""Clients' names for the two built-in groups."""


def trial(
    record: Trial, state: State, summary: Summary, *, now: float, waiting_reason: str = ""
) -> dict[str, Any]:
    """A trial. `waiting_reason` says why it is waiting for slots, if known."""
    best, latest = summary.best_validation, summary.latest_validation
    best_checkpoint = _best_checkpoint(record, state)
    # The built-in groups last: a script may call one of its own groups as clients call them.
    groups = sorted(summary.summary, key=lambda name: name in GROUP_NAMES)
    extra_fields: ExtraFields = {
        "stateReason": waiting_reason
        if waiting_reason and trial_state(record) == "QUEUED"
        else record.reason,
        "hparams": record.hparams,
        "totalBatchesProcessed": max(summary.total_batches, record.steps),
        "bestValidation": validation_summary(best) if best else None,
        "latestValidation": validation_summary(latest) if latest else None,
        "bestCheckpoint": checkpoint_workload(best_checkpoint) if best_checkpoint else None,
        "wallClockTime": _wall_clock_s(_runs(record, state), now),
        "warmStartCheckpointUuid": record.warm_start,
        "taskIds": [record.task_id],
        "summaryMetrics": {GROUP_NAMES.get(name, name): summary.summary[name] for name in groups},
        "trialRunId": record.run,
    }
    return {**columns_json(COLUMNS, state, record), **extra_fields}


class ExtraFields(TypedDict):
    """The fields of a trial that are not columns."""

    stateReason: str
    hparams: dict[str, Any]
    totalBatchesProcessed: int
    bestValidation: dict[str, Any] | None
    latestValidation: dict[str, Any] | None
    bestCheckpoint: dict[str, Any] | None
    wallClockTime: float
    warmStartCheckpointUuid: str | None
    taskIds: list[str]
    summaryMetrics: dict[str, Any]
    trialRunId: int


def _runs(record: Trial, state: State) -> list[Allocation]:
    numbers = range(1, record.run + 1)
    allocations = (state.allocations.get(f"{record.task_id}.{run}") for run in numbers)
    return [run for run in allocations if run is not None]


def _wall_clock_s(runs: list[Allocation], now: float) -> float:
    return sum((run.ended_at or now) - run.started_at for run in runs if run.started_at is not None)


def _best_checkpoint(record: Trial, state: State) -> Checkpoint | None:
    """The newest checkpoint at the steps of the best validation."""
    if record.best is None:
        return None
    newest_first = (
        state.checkpoints[key[-1]] for key in state.checkpoints_at.descending(record.id, record.best.steps)
    )
    return next((checkpoint for checkpoint in newest_first if checkpoint.state == "COMPLETED"), None)
