"""What the script of a trial states, through the SDK.

A script writes these by itself, so their fields have bounds: what goes beyond is no event, and all skip it.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from det_contracts.codec import event
from det_contracts.limits import TEXT_CHARACTERS, WHOLE

Count = Annotated[int, Meta(ge=0, le=WHOLE)]
Bytes = Annotated[int, Meta(ge=0, le=2**50)]
Token = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}\Z")]
Text = Annotated[str, Meta(max_length=TEXT_CHARACTERS, pattern=r"^[^\x00]*\Z")]
"""Databases have no NUL in text."""


@event("trial.operation_completed", key="trial_id")
class OperationCompleted(msgspec.Struct, frozen=True, kw_only=True):
    """The searcher metric for operation `seq`. The searcher answers with `OperationSet` or `TrialIdled`.

    May be sent twice; the first one for (trial, seq) counts.
    """

    trial_id: Count
    run: Count
    seq: Count
    length: Count
    metric: Any
    """A number; NaN and infinities as the strings NaN, Infinity, -Infinity; any JSON for custom searchers."""


@event("trial.progressed", key="trial_id")
class Progressed(msgspec.Struct, frozen=True):
    """How far the current operation has come: units trained in all. Advisory, thinned out by the SDK."""

    trial_id: Count
    run: Count
    units: float


@event("trial.exited_early", key="trial_id")
class ExitedEarly(msgspec.Struct, frozen=True):
    """The script gives the trial up: `INVALID_HP`, `INIT_INVALID_HP` or `USER_REQUESTED_STOP`."""

    trial_id: Count
    run: Count
    reason: Text


@event("trial.checkpoint_stored", key="trial_id")
class CheckpointStored(msgspec.Struct, frozen=True, kw_only=True):
    """All bytes of a checkpoint are in the store. The searcher resumes from it, checkpoints registers it."""

    trial_id: Count
    experiment_id: Count
    run: Count
    task_id: Text
    allocation_id: Text
    uuid: Token
    resources: dict[str, Bytes]
    """Relative path to bytes; a directory ends in '/' and has 0."""
    metadata: dict[str, Any]
    steps_completed: Count


@event("trial.preemption_acknowledged", key="trial_id")
class PreemptionAcknowledged(msgspec.Struct, frozen=True):
    """The coming exit is meant: asked to leave, or out of operations."""

    trial_id: Count
    run: Count


@event("trial.heartbeat", key="trial_id")
class Heartbeat(msgspec.Struct, frozen=True):
    """The script of an unmanaged trial lives. Of earlier versions: now signs of life are not stored."""

    trial_id: Count
    run: Count


@event("trial.status_set", key="trial_id")
class StatusSet(msgspec.Struct, frozen=True):
    """Short text that is shown as the runner's state."""

    trial_id: Count
    run: Count
    status: Text
