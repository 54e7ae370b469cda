"""What trials reported, one record per report (client spec, section 2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from determined.transport import instant
from determined.transport.rest import Session

_UNSET: Any = object()


@dataclass(init=False)
class TrialMetrics:
    """One report of metrics; `steps_completed` is another name of `total_batches`."""

    trial_id: int
    trial_run_id: int
    total_batches: int
    end_time: datetime
    """UTC, whole seconds."""
    metrics: dict[str, Any]
    batch_metrics: list[dict[str, Any]] | None

    def __init__(
        self,
        trial_id: int,
        trial_run_id: int,
        total_batches: int = _UNSET,
        end_time: datetime = _UNSET,
        metrics: dict[str, Any] = _UNSET,
        batch_metrics: list[dict[str, Any]] | None = None,
        *,
        steps_completed: int = _UNSET,
    ) -> None:
        if (total_batches is _UNSET) == (steps_completed is _UNSET):
            raise TypeError("give exactly one of total_batches and steps_completed, they are the same")
        for name, value in (("end_time", end_time), ("metrics", metrics)):
            if value is _UNSET:
                raise TypeError(f"{type(self).__name__} needs {name}")
        self.trial_id, self.trial_run_id = trial_id, trial_run_id
        self.total_batches = steps_completed if total_batches is _UNSET else total_batches
        self.end_time, self.metrics, self.batch_metrics = end_time, metrics, batch_metrics

    @property
    def steps_completed(self) -> int:
        """The number of batches the trial had trained on."""
        return self.total_batches


class TrainingMetrics(TrialMetrics):
    """A report of training metrics."""


class ValidationMetrics(TrialMetrics):
    """A report of validation metrics."""


_Kind = TypeVar("_Kind", bound=TrialMetrics)


def stream_training(session: Session, trial_ids: Iterable[int]) -> Iterator[TrainingMetrics]:
    """Training metrics of some trials, ordered by trial, run and steps."""
    return _stream(session, "training_metrics", trial_ids, TrainingMetrics)


def stream_validation(session: Session, trial_ids: Iterable[int]) -> Iterator[ValidationMetrics]:
    """Validation metrics of some trials, ordered by trial, run and steps."""
    return _stream(session, "validation_metrics", trial_ids, ValidationMetrics)


def _stream(session: Session, name: str, trial_ids: Iterable[int], kind: type[_Kind]) -> Iterator[_Kind]:
    for found in session.stream(f"/api/v1/trials/metrics/{name}", {"trialIds": list(trial_ids)}):
        for report in found["metrics"]:
            yield _record(report, kind)


def _record(report: dict[str, Any], kind: type[_Kind]) -> _Kind:
    told = report.get("metrics") or {}
    return kind(
        trial_id=int(report["trialId"]),
        trial_run_id=int(report["trialRunId"]),
        total_batches=int(report["totalBatches"]),
        end_time=instant.parse(report["endTime"]).replace(microsecond=0),
        metrics=told.get("avgMetrics") or {},
        batch_metrics=told.get("batchMetrics") or None,
    )
