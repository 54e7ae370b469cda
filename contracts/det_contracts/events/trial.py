"""Facts that a trial's script states through the SDK.

Scripts write these themselves, so their fields are bounded. A message out of bounds is not an event, and all
readers skip it.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from det_contracts.codec import event
from det_contracts.limits import MAX_EXACT_INTEGER, TEXT_CHARACTERS

Count = Annotated[int, Meta(ge=0, le=MAX_EXACT_INTEGER)]
Bytes = Annotated[int, Meta(ge=0, le=2**50)]
# `\Z`, because `$` also matches before a line break at the end.
Token = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}\Z")]
Text = Annotated[str, Meta(max_length=TEXT_CHARACTERS, pattern=r"^[^\x00]*\Z")]
"""Databases do not allow NUL in text."""


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
    """A number (NaN and infinities as the strings NaN, Infinity, -Infinity), or JSON for custom searchers."""


@event("trial.progressed", key="trial_id")
class Progressed(msgspec.Struct, frozen=True):
    """Progress of the current operation: total units trained. Advisory, and thinned by the SDK."""

    trial_id: Count
    run: Count
    units: float


@event("trial.exited_early", key="trial_id")
class ExitedEarly(msgspec.Struct, frozen=True):
    """The script ends the trial: `INVALID_HP`, `INIT_INVALID_HP` or `USER_REQUESTED_STOP`."""

    trial_id: Count
    run: Count
    reason: Text


@event("trial.checkpoint_stored", key="trial_id")
class CheckpointStored(msgspec.Struct, frozen=True, kw_only=True):
    """All bytes of a checkpoint are stored. The searcher resumes from it, and checkpoints registers it.

    May be sent twice; the first one with this `uuid` counts.
    """

    trial_id: Count
    experiment_id: Count
    run: Count
    task_id: Text
    allocation_id: Text
    uuid: Token
    resources: dict[str, Bytes]
    """Relative path to size in bytes. A directory ends in '/' and has size 0."""
    metadata: dict[str, Any]
    steps_completed: Count
    secret: Text = ""
    """What `uuid` was made of, if it is an id that only this trial can register: see `checkpoint_ids`."""


@event("trial.preemption_acknowledged", key="trial_id")
class PreemptionAcknowledged(msgspec.Struct, frozen=True):
    """The exit that follows is intentional: the script was asked to exit, or has no more operations."""

    trial_id: Count
    run: Count


@event("trial.heartbeat", key="trial_id")
class Heartbeat(msgspec.Struct, frozen=True):
    """The script of an unmanaged trial is alive.

    Only from earlier versions; heartbeats are no longer stored.
    """

    trial_id: Count
    run: Count


@event("trial.status_set", key="trial_id")
class StatusSet(msgspec.Struct, frozen=True):
    """A short text shown as the state of the run."""

    trial_id: Count
    run: Count
    status: Text
