"""Decisions of the metrics service: which reports are valid and new, and how many processes share them."""

from __future__ import annotations

import msgspec

from det_contracts.codec import event


@event("metrics.trial.validated", key="trial_id")
class Validated(msgspec.Struct, frozen=True, kw_only=True):
    """A validation report was accepted. Checkpoints ranks by it; the gateway lists it."""

    trial_id: int
    number: int
    """Counts the metrics service's decisions about this trial from 1."""
    run: int
    steps_completed: int
    metric: float | None
    """The searcher metric; None if the report lacks it or it is not a finite number."""
    reported_at: float


@event("metrics.trial.settled", key="trial_id")
class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """The trial has ended, all its stored reports have been judged, and no more will come.

    Checkpoints waits for it before it decides what to delete. A trial that runs outside of the cluster may
    end again, and is then settled again.
    """

    trial_id: int
    reason: str
    end: int = 0
    """Position of the end that it is about, in CONTROL; 0 in logs of earlier releases."""


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
    """The curves of a trial that ended long ago were dropped. Its statistics and validations are kept.

    Only the metrics service listens. It is a decision, so that a rebuild drops the same points.
    """

    trial_id: int
    through: int
    """Position of REPORTS."""
    reason: str


@event("metrics.logs.trimmed", key="through")
class LogsTrimmed(msgspec.Struct, frozen=True, kw_only=True):
    """Log lines have become too old or too many: those stored up to a position of LOGS are dropped.

    Only the metrics service listens. It is a decision, so that a rebuild drops the same lines.
    """

    through: int
    """Position of LOGS."""
    reason: str


@event("metrics.shards.set", key="shards")
class ShardsSet(msgspec.Struct, frozen=True, kw_only=True):
    """So many metrics processes share the trials that are created from now on, and the logs of their tasks.

    Earlier trials and tasks stay where they are. A number that is not larger than the one before has no
    effect.
    """

    shards: int
    first_trial: int
    """The trials from this number on are shared."""
    first_experiment: int
    """The tasks of the experiments from this number on are shared."""
    reason: str


@event("metrics.shard.joined", key="shard")
class ShardJoined(msgspec.Struct, frozen=True, kw_only=True):
    """A shard follows `metrics.shards.set` with this number.

    No process of it that does not know the number can decide any more, because of the fence. Reports are read
    once all shards have joined.
    """

    shard: int
    """Counted from 1."""
    shards: int
    reason: str


@event("metrics.database.copied", key="owner")
class DatabaseCopied(msgspec.Struct, frozen=True, kw_only=True):
    """The database of a metrics process was copied to its object store, as it was at these positions.

    A process whose database is empty continues from the newest copy. Nobody else listens.
    """

    owner: str
    copy: str
    """SHA-256 of the object that names all others."""
    before: str
    """That of the copy before, of which this one uses what has not changed; empty for the first."""
    through: dict[str, int]
    """Position by stream."""
    size: int
    """Size of its objects, in bytes."""
    reason: str
