"""Metric reports of trials, one record per report (client spec, section 2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from determined.transport import instant
from determined.transport.rest import Session

_FIELDS = ("trial_id", "trial_run_id", "total_batches", "end_time", "metrics")


class StepsBackwardCompat:
    """Provides `steps_completed` as an alias of `total_batches`."""

    total_batches: int

    @property
    def steps_completed(self) -> int:
        """The number of batches the trial had trained on.

        Example:
            ```python
            for report in client.get_trial(7).stream_training_metrics():
                print(report.steps_completed, report.metrics)
            ```
        """
        return self.total_batches


@dataclass(init=False)
class _TrialMetrics:
    """One report of metrics."""

    trial_id: int
    trial_run_id: int
    total_batches: int
    end_time: datetime
    """UTC, to the microsecond."""
    metrics: dict[str, Any]
    batch_metrics: list[dict[str, Any]] | None = None

    def __init__(self, steps_completed: int | None = None, **kwargs: Any) -> None:
        """Set the fields by name.

        Raises TypeError unless all are given, and exactly one name of the steps.
        """
        if ("total_batches" in kwargs) == (steps_completed is not None):
            raise TypeError("give exactly one of total_batches and steps_completed; they mean the same")
        fields = {"total_batches": steps_completed, "batch_metrics": None, **kwargs}
        missing, unknown = set(_FIELDS) - set(fields), set(fields) - {*_FIELDS, "batch_metrics"}
        if missing or unknown:
            what = (
                f"needs {', '.join(sorted(missing))}" if missing else f"has no {', '.join(sorted(unknown))}"
            )
            raise TypeError(f"{type(self).__name__} {what}")
        vars(self).update(fields)


class TrainingMetrics(_TrialMetrics, StepsBackwardCompat):
    """A report of training metrics.

    Attributes:
        trial_id: Id of the trial.
        trial_run_id: The run of the trial that reported it.
        steps_completed: Number of batches the trial had trained. Also available as `total_batches`.
        end_time: When it was reported, in UTC.
        metrics: Metric values by name.
        batch_metrics: Metrics of single batches, if reported.

    Example:
        ```python
        for report in client.get_trial(12).stream_training_metrics():
            print(report.trial_run_id, report.steps_completed, report.end_time, report.metrics["loss"])
        ```
    """


class ValidationMetrics(_TrialMetrics, StepsBackwardCompat):
    """A report of validation metrics, with the attributes of `TrainingMetrics`.

    Example:
        ```python
        reports = client.get_trial(12).stream_validation_metrics()
        best = max(reports, key=lambda report: report.metrics["accuracy"])
        print(f"best after {best.steps_completed} batches: {best.metrics}")
        ```
    """


_Kind = TypeVar("_Kind", bound=_TrialMetrics)


def stream_training(session: Session, trial_ids: Iterable[int]) -> Iterator[TrainingMetrics]:
    """Return the training metrics of some trials, ordered by trial, run and steps."""
    return _stream(session, "training_metrics", trial_ids, TrainingMetrics)


def stream_validation(session: Session, trial_ids: Iterable[int]) -> Iterator[ValidationMetrics]:
    """Return the validation metrics of some trials, ordered by trial, run and steps."""
    return _stream(session, "validation_metrics", trial_ids, ValidationMetrics)


def _stream(session: Session, name: str, trial_ids: Iterable[int], kind: type[_Kind]) -> Iterator[_Kind]:
    for record in session.stream(f"/api/v1/trials/metrics/{name}", {"trialIds": list(trial_ids)}):
        for report in record["metrics"]:
            yield _record(report, kind)


def _record(report: dict[str, Any], kind: type[_Kind]) -> _Kind:
    answer = report.get("metrics") or {}
    return kind(
        trial_id=int(report["trialId"]),
        trial_run_id=int(report["trialRunId"]),
        total_batches=int(report["totalBatches"]),
        end_time=instant.parse(report["endTime"]),
        metrics=answer.get("avgMetrics") or {},
        batch_metrics=answer.get("batchMetrics") or None,
    )
