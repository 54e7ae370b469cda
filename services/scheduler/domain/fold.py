"""How each event changes the scheduler's state.

This module handles allocation events, starting from the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from det_contracts import ids
from det_contracts.envelope import Recorded
from det_contracts.events import checkpoints, gateway, scheduler, searcher, worker
from services.kit.folds import Fold, of_event
from services.kit.idempotency import fold_result
from services.kit.pool_bindings import pool_bound
from services.scheduler.domain import hosts, provisioned, queue
from services.scheduler.domain.records import Deadline, Member, Pause
from services.scheduler.domain.state import Key, State

replace = msgspec.structs.replace
PAUSE_S = 10.0
"""How long a trial's slots stay reserved while it is unknown whether it runs again, in seconds."""


def _stop_requested(state: State, recorded: Recorded) -> Iterable[Key]:
    event: searcher.StopRequested = recorded.event
    allocation = state.allocations.get(event.allocation_id)
    if allocation is None:
        return
    stop = "die" if event.kill else "leave"
    yield from state.put_allocation(
        replace(allocation, stop=stop, stop_reason=event.reason, stop_at=recorded.at)
    )
    yield from state.touch_pool(allocation.pool)


def _assigned(state: State, recorded: Recorded) -> Iterable[Key]:
    event: scheduler.AllocationAssigned = recorded.event
    allocation = state.allocations[event.allocation_id]
    # The worker may have left between the decision and its place in the log, since facts of others come
    # in between.
    members = tuple(_member(state, part, fenced=event.fence_s > 0) for part in event.parts)
    yield from state.put_allocation(
        replace(
            allocation,
            state="ASSIGNED",
            members=members,
            assigned=recorded.position,
            backfilled=event.backfilled,
            fence_s=event.fence_s,
        )
    )
    yield from state.touch_pool(allocation.pool)
    for part in event.parts:
        yield from provisioned.refresh_worker(state, part.worker_id, recorded.at)


def _member(state: State, part: scheduler.Part, *, fenced: bool) -> Member:
    """A member's part of an allocation.

    It is lost immediately if the worker or its slots disappeared before the assignment was folded.
    """
    worker = state.workers.get(part.worker_id)
    offered = {slot.id for slot in worker.slots} if worker is not None and worker.presence == "here" else None
    is_lost = offered is None or not set(part.slots) <= offered
    over = is_lost and not fenced
    return Member(worker_id=part.worker_id, slots=part.slots, rank=part.rank, over=over, lost=is_lost)


def _preempt_requested(state: State, recorded: Recorded) -> Iterable[Key]:
    event: scheduler.PreemptRequested = recorded.event
    allocation = state.allocations.get(event.allocation_id)
    if allocation is None:
        return
    by = recorded.at + event.within_s if event.deadline_at is None else event.deadline_at
    yield from state.put_deadline(allocation.id, Deadline(by))
    yield from state.put_allocation(replace(allocation, state="TERMINATING", asked_to_leave=True, idle_s=0.0))


def _task_stop_requested(state: State, recorded: Recorded) -> Iterable[Key]:
    event: scheduler.TaskStopRequested = recorded.event
    allocation = state.allocations.get(ids.allocation_id(event.task_id, 1))
    if allocation is None:
        return ()
    return state.put_allocation(
        replace(allocation, stop="die", stop_reason=event.reason, stop_at=recorded.at)
    )


def _task_idled(state: State, recorded: Recorded) -> Iterable[Key]:
    event: scheduler.TaskIdled = recorded.event
    allocation = state.allocations.get(ids.allocation_id(event.task_id, 1))
    # An allocation that was already asked to exit keeps the deadline it has for that.
    if allocation is None or allocation.asked_to_leave or allocation.late:
        return
    if event.idle:
        yield from state.put_deadline(allocation.id, Deadline(recorded.at + event.within_s))
    else:
        yield from state.drop_deadline(allocation.id)
    yield from state.put_allocation(replace(allocation, idle_s=event.within_s if event.idle else 0.0))


def _daemon_marked(state: State, recorded: Recorded) -> Iterable[Key]:
    event: scheduler.DaemonMarked = recorded.event
    allocation = state.allocations.get(event.allocation_id)
    if allocation is None:
        return ()
    members = tuple(replace(m, daemon=True) if m.rank == event.rank else m for m in allocation.members)
    return state.put_allocation(replace(allocation, members=members))


def _deadline_passed(state: State, recorded: Recorded) -> Iterable[Key]:
    id = recorded.event.allocation_id
    yield from state.drop_deadline(id)
    if id in state.allocations:
        yield from state.put_allocation(replace(state.allocations[id], late=True))


def _kill_requested(state: State, recorded: Recorded) -> Iterable[Key]:
    event: scheduler.KillRequested = recorded.event
    allocation = state.allocations.get(event.allocation_id)
    if allocation is None:
        return ()
    no_part_ended = not any(member.over or member.lost for member in allocation.members)
    return state.put_allocation(
        replace(
            allocation,
            state="TERMINATING",
            killed=event.reason or "killed",
            killed_from=recorded.position,
            killed_whole=no_part_ended,
        )
    )


def _ended(state: State, recorded: Recorded) -> Iterable[Key]:
    allocation = state.allocations[recorded.event.allocation_id]
    # Before the workers are looked at again: whether one is busy follows from what it still holds.
    yield from state.drop_allocation(allocation)
    yield from queue.task_ended(state, allocation, recorded.at)
    for member in allocation.members:
        yield from provisioned.refresh_worker(state, member.worker_id, recorded.at)
    # Nothing else runs a second time. Without the pause, the slots of a trial that restarts would go to
    # whoever waits, and the trial to the end of the queue.
    if allocation.trial_id is not None and allocation.slots:
        yield from state.put_pause(
            Pause(
                trial_id=allocation.trial_id,
                experiment_id=allocation.experiment_id,
                pool=allocation.pool,
                slots=allocation.slots,
                due_at=recorded.at + PAUSE_S,
            )
        )


def _end_pause(state: State, recorded: Recorded) -> Iterable[Key]:
    return state.drop_pause(recorded.event.trial_id)


def _started(state: State, recorded: Recorded) -> Iterable[Key]:
    return _change_member(state, recorded.event, started=True)


def _exited(state: State, recorded: Recorded) -> Iterable[Key]:
    event: worker.AllocationExited = recorded.event
    code, message = event.exit_code, event.message
    marks = {name: True for name in ("lost", "permanent") if getattr(event, name)}
    return _change_member(
        state, event, over=True, exit_code=code, message=message, ended=recorded.position, **marks
    )


def _given_up(state: State, recorded: Recorded) -> Iterable[Key]:
    return _change_member(state, recorded.event, over=True, lost=True)


def _limits_changed(state: State, recorded: Recorded) -> Iterable[Key]:
    return state.limits_changed()


def _change_member(state: State, event: Any, **changes: Any) -> Iterable[Key]:
    allocation = state.allocations.get(event.allocation_id)
    if allocation is None:
        return ()
    members = tuple(
        replace(m, **changes) if m.worker_id == event.worker_id and not m.over else m
        for m in allocation.members
    )
    if allocation.state == "ASSIGNED" and all(m.started or m.over for m in members):
        allocation = replace(allocation, state="RUNNING")
    return state.put_allocation(replace(allocation, members=members))


_FOLDS: dict[type, Callable[[State, Recorded], Iterable[Key]]] = {
    scheduler.PoolConfigured: queue.pool_configured,
    searcher.ExperimentCreated: queue.experiment_created,
    searcher.ExperimentEnded: queue.experiment_ended,
    scheduler.JobChanged: queue.job_changed,
    searcher.RunRequested: queue.run_requested,
    checkpoints.DeletionRequested: queue.deletion_requested,
    worker.WorkerRegistered: hosts.registered,
    worker.WorkerLeft: hosts.left_or_lost,
    scheduler.WorkerLost: hosts.left_or_lost,
    scheduler.GivenUp: _given_up,
    scheduler.WorkerSwitched: hosts.switched,
    scheduler.SlotSwitched: hosts.slot_switched,
    scheduler.WorkerWanted: provisioned.wanted,
    scheduler.ProvisionReported: provisioned.reported,
    scheduler.WorkerTimePassed: provisioned.time_passed,
    scheduler.WorkerReleased: provisioned.released,
    scheduler.WorkerDismissed: provisioned.dismissed,
    scheduler.EngineReported: provisioned.engine_reported,
    scheduler.RetryDue: provisioned.retry_due,
    searcher.StopRequested: _stop_requested,
    searcher.RunEnded: _end_pause,
    searcher.TrialEnded: _end_pause,
    scheduler.PauseOver: _end_pause,
    scheduler.AllocationAssigned: _assigned,
    worker.AllocationStarted: _started,
    worker.AllocationExited: _exited,
    scheduler.PreemptRequested: _preempt_requested,
    scheduler.DeadlinePassed: _deadline_passed,
    scheduler.KillRequested: _kill_requested,
    scheduler.TaskSubmitted: queue.task_submitted,
    scheduler.CreationKept: fold_result,
    scheduler.TaskForgotten: queue.task_forgotten,
    scheduler.WorkerForgotten: hosts.forgotten,
    scheduler.TaskStopRequested: _task_stop_requested,
    scheduler.TaskIdled: _task_idled,
    scheduler.DaemonMarked: _daemon_marked,
    scheduler.AllocationEnded: _ended,
    gateway.ExperimentMoved: queue.experiment_moved,
    gateway.PoolBound: of_event(pool_bound),
    gateway.QuotaSet: _limits_changed,
    gateway.GroupSet: _limits_changed,
    gateway.GroupRemoved: _limits_changed,
    gateway.ProjectSet: _limits_changed,
    gateway.UserSet: _limits_changed,
}

evolve = Fold(_FOLDS)
"""Folds one event; returns the keys of the changed records."""
