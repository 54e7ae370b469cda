"""The scheduler's rules: what its state calls for.

For an allocation: ask it to leave, kill it, declare it over. For a pool: one pass over the queue.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Any

from det_contracts.events import scheduler
from services.scheduler.domain import Allocation, Member, State
from services.scheduler.passes import one_pass

PREEMPTION_DEADLINE_S = 3600.0
"""How long a script may take to save and leave (scheduling spec, 8.5)."""
LATE = "allocation did not preempt in 1h0m0s"


def react(state: State, key: tuple[str, Any]) -> Sequence[Any]:
    """Events that one record calls for; none for a record at rest."""
    kind, id = key
    if kind == "pools":
        return one_pass(state, id)
    if kind == "allocations" and id in state.allocations:
        return _allocation(state.allocations[id])
    return ()


def _allocation(allocation: Allocation) -> Sequence[Any]:
    if allocation.state == "PENDING":
        return [_ended(allocation, "killed", None, allocation.stop_reason)] if allocation.stop else ()
    if all(member.over for member in allocation.members):
        return [_judge(allocation)]
    kill = None if allocation.killed else _kill_reason(allocation)
    if kill is not None:
        return [scheduler.KillRequested(allocation.id, kill)]
    if allocation.stop == "leave" and allocation.deadline_at is None and not allocation.killed:
        return [
            scheduler.PreemptRequested(
                allocation_id=allocation.id,
                deadline_at=allocation.stop_at + PREEMPTION_DEADLINE_S,
                reason=allocation.stop_reason,
            )
        ]
    return ()


def _kill_reason(allocation: Allocation) -> str | None:
    """Why what still runs of an allocation must end at once; None when it need not."""
    if allocation.deadline_passed:
        return LATE
    if allocation.stop == "die":
        return allocation.stop_reason
    if allocation.stop == "leave" and allocation.state == "ASSIGNED":
        return f"{allocation.stop_reason}; it had not started yet"
    failed = next((m for m in allocation.members if m.over and (m.lost or m.exit_code != 0)), None)
    return f"another part of it ended first: {describe(failed)}" if failed else None


def _judge(allocation: Allocation) -> scheduler.AllocationEnded:
    # Parts that we killed ourselves tell nothing; the first that ended badly on its own does.
    bad = [m for m in allocation.members if m.lost or m.exit_code != 0]
    first = next((m for m in bad if not (allocation.killed and m.exit_code == 128 + signal.SIGKILL)), None)
    if first is not None and first.lost:
        return _ended(allocation, "worker_lost", None, describe(first))
    if allocation.killed and (allocation.stop or allocation.deadline_passed):
        return _ended(allocation, "killed", None, _kill_reason(allocation) or allocation.stop_reason)
    if not bad:
        return _ended(allocation, "succeeded", 0, "exit code 0")
    shown = first or bad[0]
    outcome: scheduler.Outcome = "not_started" if shown.exit_code is None else "failed"
    return _ended(allocation, outcome, shown.exit_code, describe(shown))


def _ended(
    allocation: Allocation, outcome: scheduler.Outcome, exit_code: int | None, reason: str
) -> scheduler.AllocationEnded:
    return scheduler.AllocationEnded(
        allocation_id=allocation.id,
        kind=allocation.kind,
        trial_id=allocation.trial_id,
        run=allocation.run,
        outcome=outcome,
        exit_code=exit_code,
        reason=reason,
    )


def describe(member: Member) -> str:
    """How a member of an allocation ended, for a person."""
    if member.lost:
        return f"worker {member.worker_id} was lost"
    if member.exit_code is None:
        return member.message or "it could not be started"
    if member.exit_code > 128 and member.exit_code - 128 in list(signal.Signals):
        said = f"killed by {signal.Signals(member.exit_code - 128).name} (exit code {member.exit_code})"
    else:
        said = f"exit code {member.exit_code}"
    return f"{said}: {member.message}" if member.message else said


def due(state: State) -> float | None:
    """The earliest deadline that has not been stated as passed."""
    return min((at for _, at in _open_deadlines(state)), default=None)


def expire(state: State, now: float) -> Sequence[Any]:
    """Facts about deadlines that have come."""
    return [scheduler.DeadlinePassed(id, at) for id, at in _open_deadlines(state) if at <= now]


def _open_deadlines(state: State) -> list[tuple[str, float]]:
    return [
        (a.id, a.deadline_at)
        for a in state.allocations.values()
        if a.deadline_at is not None and not a.deadline_passed
    ]
