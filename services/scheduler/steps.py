"""What an allocation's state calls for: ask it to leave, kill it, declare it over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from det_contracts.events import scheduler
from services.scheduler.domain import Allocation, Member, State
from services.scheduler.verdict import describe, judge

PREEMPTION_DEADLINE_S = 3600.0
"""How long a script may take to save and leave (scheduling spec, 8.5)."""
LATE = "allocation did not preempt in 1h0m0s"


SERVED = "what it served is over"


def next_step(state: State, allocation: Allocation) -> Sequence[Any]:
    """Events that one allocation calls for; none when it is at rest."""
    if allocation.state == "PENDING":
        return [_never_ran(allocation)] if allocation.stop else ()
    if all(member.over for member in allocation.members):
        return [judge(allocation)]
    kill = "" if allocation.killed else _kill_reason(state, allocation)
    if kill:
        return [scheduler.KillRequested(allocation.id, kill)]
    notice = "" if allocation.leaving else _notice(state, allocation)
    if notice:
        return [
            scheduler.PreemptRequested(
                allocation_id=allocation.id, reason=notice, within_s=PREEMPTION_DEADLINE_S
            )
        ]
    if allocation.stop == "leave" and not allocation.asked_to_leave and not allocation.killed:
        return [
            scheduler.PreemptRequested(
                allocation_id=allocation.id, reason=allocation.stop_reason, within_s=PREEMPTION_DEADLINE_S
            )
        ]
    return ()


def idle_reason(seconds: float) -> str:
    """Why a task is ended that nobody used for its whole idle time-out."""
    return f"idle for more than {seconds:g} s (idle_timeout)"


def _never_ran(allocation: Allocation) -> scheduler.AllocationEnded:
    return scheduler.AllocationEnded(
        allocation_id=allocation.id,
        kind=allocation.kind,
        trial_id=allocation.trial_id,
        run=allocation.run,
        outcome="killed",
        reason=allocation.stop_reason,
    )


def _kill_reason(state: State, allocation: Allocation) -> str:
    """Why what still runs of an allocation must end at once; empty when it need not."""
    if allocation.late:
        return idle_reason(allocation.idle_s) if allocation.idle_s else LATE
    if allocation.stop == "die":
        return allocation.stop_reason
    if allocation.stop == "leave" and allocation.state == "ASSIGNED":
        return f"{allocation.stop_reason}; it had not started yet"
    cut_off = next((m for m in allocation.members if m.lost and not m.over), None)
    if cut_off is not None:
        return describe(cut_off)
    failed = next((m for m in allocation.members if m.over and (m.lost or m.exit_code != 0)), None)
    if failed is not None:
        return f"another node of it ended first: {describe(failed)}"
    if all(m.over or m.daemon for m in allocation.members):
        return SERVED
    closed = (_closed(state, m) for m in allocation.members if not m.over)
    return next((reason for reason in closed if reason), "")


def _notice(state: State, allocation: Allocation) -> str:
    """Why it must leave a worker that its pool gives back; empty where it need not."""
    found = (state.provisioned.get(m.worker_id) for m in allocation.members if not m.over)
    given_back = next((one for one in found if one is not None and one.released), None)
    return f"{given_back.id} is given back: {given_back.released}" if given_back else ""


def _closed(state: State, member: Member) -> str:
    """Whether a person closed what a member runs on, without letting it come to its end."""
    worker = state.workers.get(member.worker_id)
    if worker is None:
        return ""
    if not worker.switch.enabled and not worker.switch.draining:
        return f"agent disabled: {worker.id}"
    for slot in member.slots:
        switch = worker.slot_switch(slot)
        if not switch.enabled and not switch.draining:
            return f"slot disabled: {slot} of {worker.id}"
    return ""
