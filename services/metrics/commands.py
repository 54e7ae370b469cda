"""Commands that the metrics service accepts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from det_contracts.events.metrics import LogsTrimmed, PointsDropped, Settled, ShardJoined, ShardsSet
from services.kit.rules import Call, Result
from services.metrics.domain import State, dropped_through, sharing_of, trimmed_through

AT_ONCE = 500
"""Maximum number of trials per decision; the next look finds the others."""


class Settle(msgspec.Struct, frozen=True, tag="settle"):
    """Sent by the monitor beside the service when all reports before these trials' ends are folded."""

    trial_ids: tuple[int, ...]
    user: str = "metrics"


def settle(state: State, command: Settle, call: Call) -> Result:
    """Settle those trials whose decisions are all in the log."""
    # Retention of checkpoints begins with this event, so every decision about the trial must be in the log
    # before it (decision 3).
    done = [id for id in command.trial_ids if id in state.ended and not _has_unrecorded(state, id)]
    return Result(
        [
            Settled(
                trial_id=id,
                reason="the trial has ended and all its reports are judged",
                end=state.ended[id].position,
            )
            for id in done
        ]
    )


class Trim(msgspec.Struct, frozen=True, tag="trim"):
    """Sent by the monitor beside the service: log lines up to a position of LOGS are no longer wanted."""

    through: int
    reason: str
    user: str = "metrics"


def trim(state: State, command: Trim, call: Call) -> Result:
    """Record the trimming, unless those lines are gone already."""
    if command.through <= trimmed_through(state):
        return Result()
    return Result([LogsTrimmed(through=command.through, reason=command.reason)])


class Drop(msgspec.Struct, frozen=True, tag="drop"):
    """Sent by the monitor beside the service when reports up to a position of REPORTS are too old."""

    trial_ids: tuple[int, ...]
    through: int
    reason: str
    user: str = "metrics"


def drop(state: State, command: Drop, call: Call) -> Result:
    """Record the deletion for trials that have ended for good. A live trial may need its points again."""
    settled = (id for id in command.trial_ids if id in state.settled)
    old = [id for id in settled if dropped_through(state, id) < command.through]
    some = old[:AT_ONCE]
    return Result([PointsDropped(trial_id=id, through=command.through, reason=command.reason) for id in some])


class Share(msgspec.Struct, frozen=True, tag="share"):
    """Sent by the first shard when the settings ask for more shards than there are."""

    shards: int
    first_trial: int
    first_experiment: int
    user: str = "metrics"


def share(state: State, command: Share, call: Call) -> Result:
    """Record the number of shards, unless there are as many already."""
    if command.shards <= sharing_of(state.sharing).shards:
        return Result()
    reason = f"STEADFAST_METRICS_SHARDS is {command.shards}"
    return Result(
        [
            ShardsSet(
                shards=command.shards,
                first_trial=command.first_trial,
                first_experiment=command.first_experiment,
                reason=reason,
            )
        ]
    )


class Join(msgspec.Struct, frozen=True, tag="join"):
    """Sent by a shard whose settings agree with the number of shards."""

    shard: int
    shards: int
    user: str = "metrics"


def join(state: State, command: Join, call: Call) -> Result:
    """Record that the shard follows that number, once."""
    sharing = sharing_of(state.sharing)
    if command.shards != sharing.shards or command.shard in sharing.joined:
        return Result()
    reason = "it reads its part alone from here on"
    return Result([ShardJoined(shard=command.shard, shards=command.shards, reason=reason)])


def _has_unrecorded(state: State, id: int) -> bool:
    return bool(state.unrecorded(id))


COMMANDS: dict[Any, Callable[[State, Any, Call], Result]] = {
    Settle: settle,
    Trim: trim,
    Drop: drop,
    Share: share,
    Join: join,
}
