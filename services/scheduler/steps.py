"""The next step for an allocation, given its state: ask it to exit, kill it, or declare it over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from det_contracts.events import scheduler
from services.scheduler.domain import Allocation, Member, State
from services.scheduler.verdict import describe_end, end_event

PREEMPTION_DEADLINE_S = 3600.0
"""How long a script may take to save and exit (scheduling spec, 8.5), in seconds."""
LATE_REASON = "allocation did not preempt in 1h0m0s"


DAEMONS_LEFT_REASON = "what it served is over"


def next_step(state: State, allocation: Allocation) -> Sequence[Any]:
    """Return the events that an allocation calls for; empty if there is nothing to do."""
    # It holds no slots, so nobody has to be asked to end it.
    if allocation.state == "PENDING":
        return [_never_ran_event(allocation)] if allocation.stop else ()
    # Before anything else: what has ended everywhere is neither killed nor asked to leave.
    if all(member.over for member in allocation.members):
        lost = [member for member in allocation.members if member.lost]
        return [end_event(allocation, _describe_given_back(state, lost))]
    # A kill goes before a request to leave: one that is both late and given back must not get another
    # hour.
    kill = "" if allocation.killed else _kill_reason(state, allocation)
    if kill:
        return [scheduler.KillRequested(allocation.id, kill)]
    notice = "" if allocation.leaving else _release_reason(state, allocation)
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
    """The reason given when a task is ended because nobody used it for its whole idle timeout."""
    return f"idle for more than {seconds:g} s (idle_timeout)"


def _never_ran_event(allocation: Allocation) -> scheduler.AllocationEnded:
    return scheduler.AllocationEnded(
        allocation_id=allocation.id,
        kind=allocation.kind,
        trial_id=allocation.trial_id,
        run=allocation.run,
        outcome="killed",
        reason=allocation.stop_reason,
    )


def _kill_reason(state: State, allocation: Allocation) -> str:
    """Why the remaining parts of an allocation must be killed, or "" if they need not be."""
    if allocation.late:
        return idle_reason(allocation.idle_s) if allocation.idle_s else LATE_REASON
    if allocation.stop == "die":
        return allocation.stop_reason
    if allocation.stop == "leave" and allocation.state == "ASSIGNED":
        return f"{allocation.stop_reason}; it had not started yet"
    cut_off = next((m for m in allocation.members if m.lost and not m.over), None)
    if cut_off is not None:
        return describe_end(cut_off)
    # The other nodes would wait for the failed one until their collective operations time out.
    failed = next((m for m in allocation.members if m.over and (m.lost or m.exit_code != 0)), None)
    if failed is not None:
        return f"another of its nodes ended first: {describe_end(failed)}"
    # Daemons, such as the ssh servers that launchers start, are not waited for.
    if all(m.over or m.daemon for m in allocation.members):
        return DAEMONS_LEFT_REASON
    closed = (_disabled_reason(state, m) for m in allocation.members if not m.over)
    return next((reason for reason in closed if reason), "")


def _release_reason(state: State, allocation: Allocation) -> str:
    """Why an allocation must leave a worker that its pool is giving back, or "" if it need not."""
    return _describe_given_back(state, [member for member in allocation.members if not member.over])


def _describe_given_back(state: State, members: Sequence[Member]) -> str:
    """Why the pool is giving back the first worker of these that it gives back, or "" if none is."""
    workers = (state.provisioned.get(member.worker_id) for member in members)
    given_back = next((worker for worker in workers if worker is not None and worker.released), None)
    return f"{given_back.id} is given back: {given_back.released}" if given_back else ""


def _disabled_reason(state: State, member: Member) -> str:
    """Why a member must end because a person disabled its worker or slot, or "" if none did.

    Disabling with draining lets the member finish.
    """
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
