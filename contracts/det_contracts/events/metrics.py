"""What the metrics service decides: which reports are valid and new."""

from __future__ import annotations

import msgspec

from det_contracts.codec import event


@event("metrics.trial.validated", key="trial_id")
class Validated(msgspec.Struct, frozen=True, kw_only=True):
    """A validation report was accepted. Checkpoints ranks by it, the gateway lists by it."""

    trial_id: int
    number: int
    """Counts the metrics service's decisions about this trial from 1."""
    run: int
    steps_completed: int
    metric: float | None
    """The searcher metric; None when the report lacks it or it is not a finite number."""
    reported_at: float


@event("metrics.trial.settled", key="trial_id")
class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """The trial has ended and every report that it stored has been judged; no further one will come.

    Checkpoints waits for it before it decides what may go.
    """

    trial_id: int
    reason: str


@event("metrics.trial.report_refused", key="trial_id")
class ReportRefused(msgspec.Struct, frozen=True, kw_only=True):
    """A report was not accepted. The script's SDK raises `reason` at the next call."""

    trial_id: int
    number: int
    run: int
    group: str
    steps_completed: int
    reason: str


@event("metrics.trial.points_dropped", key="trial_id")
class PointsDropped(msgspec.Struct, frozen=True, kw_only=True):
    """A trial that ended long ago keeps its statistics and validations, but no curves any longer.

    Nobody but the metrics service listens: it is a decision, so that a rebuild forgets the same points.
    """

    trial_id: int
    through: int
    """Position of REPORTS."""
    reason: str


@event("metrics.logs.trimmed", key="through")
class LogsTrimmed(msgspec.Struct, frozen=True, kw_only=True):
    """Log lines have grown too old, or too many: those stored up to a position of LOGS are kept no longer.

    Nobody but the metrics service listens: it is a decision, so that a rebuild forgets the same lines.
    """

    through: int
    """Position of LOGS."""
    reason: str
