"""Derives how an allocation ended from how each of its members ended (scheduling spec, 8.4)."""

from __future__ import annotations

import signal

from det_contracts.events import scheduler
from services.scheduler.domain import Allocation, Member

SIGKILL_EXIT_CODE = 128 + signal.SIGKILL


def end_event(allocation: Allocation, given_back: str = "") -> scheduler.AllocationEnded:
    """Return the end of an allocation whose members are all over.

    `given_back` says why a pool gives back a worker that was lost, if it does.
    """
    # Then every exit code is of our making, whatever it is: a script may catch the signal and exit with
    # 0.
    if allocation.killed_whole:
        return _ended(allocation, "killed", None, allocation.killed)
    unsuccessful = [m for m in allocation.members if m.lost or m.exit_code != 0]
    # A part that fails because a peer's host is gone is not at fault, so check for a loss first.
    lost = next((m for m in unsuccessful if m.lost), None)
    if lost is not None:
        why = "; ".join(filter(None, (describe_end(lost), given_back)))
        return _ended(allocation, "worker_lost", None, why)
    # Parts that we killed say nothing about the cause; use the first that failed by itself.
    failed_by_themselves = [
        m for m in unsuccessful if not (_ended_after_kill(allocation, m) and m.exit_code == SIGKILL_EXIT_CODE)
    ]
    if failed_by_themselves:
        first = min(failed_by_themselves, key=lambda member: member.ended)
        outcome: scheduler.Outcome = "not_started" if first.exit_code is None else "failed"
        return _ended(allocation, outcome, first.exit_code, describe_end(first), permanent=first.permanent)
    # Daemons that we ended when nothing was left to serve did not fail.
    if not all(member.daemon for member in unsuccessful):
        return _ended(allocation, "killed", None, allocation.killed)
    return _ended(allocation, "succeeded", 0, "exit code 0")


def _ended_after_kill(allocation: Allocation, member: Member) -> bool:
    return bool(allocation.killed) and member.ended > allocation.killed_from


def _ended(
    allocation: Allocation,
    outcome: scheduler.Outcome,
    exit_code: int | None,
    reason: str,
    *,
    permanent: bool = False,
) -> scheduler.AllocationEnded:
    return scheduler.AllocationEnded(
        allocation_id=allocation.id,
        kind=allocation.kind,
        trial_id=allocation.trial_id,
        run=allocation.run,
        outcome=outcome,
        exit_code=exit_code,
        reason=reason,
        permanent=permanent,
        asked_to_leave=allocation.asked_to_leave,
    )


def describe_end(member: Member) -> str:
    """How a member of an allocation ended, in words."""
    if member.lost:
        return f"worker {member.worker_id} was lost" + (f": {member.message}" if member.message else "")
    if member.exit_code is None:
        return member.message or "it could not be started"
    if member.exit_code > 128 and member.exit_code - 128 in list(signal.Signals):
        status = f"killed by {signal.Signals(member.exit_code - 128).name} (exit code {member.exit_code})"
    else:
        status = f"exit code {member.exit_code}"
    return f"{status}: {member.message}" if member.message else status
