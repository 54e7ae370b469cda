"""How each event changes what the scheduler knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from det_contracts import ids
from det_contracts.envelope import Recorded
from det_contracts.events import checkpoints, scheduler, searcher, worker
from services.scheduler.domain.state import Allocation, Job, Member, Pool, State, Worker

Key = tuple[str, Any]
replace = msgspec.structs.replace
DEFAULT_PRIORITY = 42


def evolve(state: State, recorded: Recorded) -> Iterable[Key]:
    """Fold one event; returns the records that it replaced. Events that do not concern it pass by."""
    fold = _FOLDS.get(type(recorded.event))
    return fold(state, recorded) if fold is not None else ()


def _experiment_created(state: State, recorded: Recorded) -> Iterable[Key]:
    id = recorded.event.experiment_id
    state.jobs[id] = Job(id, recorded.at)
    yield "jobs", id


def _experiment_ended(state: State, recorded: Recorded) -> Iterable[Key]:
    state.jobs.pop(recorded.event.experiment_id, None)
    yield "jobs", recorded.event.experiment_id


def _run_requested(state: State, recorded: Recorded) -> Iterable[Key]:
    event: searcher.RunRequested = recorded.event
    return _queue(
        state,
        Allocation(
            id=event.allocation_id,
            task_id=event.task_id,
            kind="TRIAL",
            experiment_id=event.experiment_id,
            trial_id=event.trial_id,
            run=event.run,
            slots=event.slots,
            pool=event.pool,
            priority=event.priority,
            requested_at=recorded.at,
            requested=recorded.position,
        ),
    )


def _deletion_requested(state: State, recorded: Recorded) -> Iterable[Key]:
    event: checkpoints.DeletionRequested = recorded.event
    return _queue(
        state,
        Allocation(
            id=ids.allocation_id(event.task_id, 1),
            task_id=event.task_id,
            kind="CHECKPOINT_GC",
            experiment_id=event.experiment_id,
            trial_id=None,
            run=1,
            slots=0,
            pool="default",
            priority=DEFAULT_PRIORITY,
            requested_at=recorded.at,
            requested=recorded.position,
        ),
    )


def _queue(state: State, allocation: Allocation) -> Iterable[Key]:
    pool = state.pools.get(allocation.pool, Pool(allocation.pool))
    state.pools[pool.name] = replace(pool, pending=(*pool.pending, allocation.id))
    yield "pools", pool.name
    yield from _put(state, allocation)


def _put(state: State, allocation: Allocation) -> Iterable[Key]:
    state.allocations[allocation.id] = allocation
    yield "allocations", allocation.id


def _leave_queue(state: State, allocation: Allocation) -> Iterable[Key]:
    pool = state.pools[allocation.pool]
    state.pools[pool.name] = replace(pool, pending=tuple(id for id in pool.pending if id != allocation.id))
    yield "pools", pool.name


def _stop_requested(state: State, recorded: Recorded) -> Iterable[Key]:
    event: searcher.StopRequested = recorded.event
    known = state.allocations.get(event.allocation_id)
    if known is None:
        return ()
    stopped = replace(
        known, stop="die" if event.kill else "leave", stop_reason=event.reason, stop_at=recorded.at
    )
    return _put(state, stopped)


def _assigned(state: State, recorded: Recorded) -> Iterable[Key]:
    event: scheduler.AllocationAssigned = recorded.event
    known = state.allocations[event.allocation_id]
    members = tuple(Member(worker_id=p.worker_id, slots=p.slots, rank=p.rank) for p in event.parts)
    yield from _leave_queue(state, known)
    yield from _put(state, replace(known, state="ASSIGNED", members=members, assigned=recorded.position))


def _preempt_requested(state: State, recorded: Recorded) -> Iterable[Key]:
    event: scheduler.PreemptRequested = recorded.event
    known = state.allocations[event.allocation_id]
    return _put(state, replace(known, state="TERMINATING", deadline_at=event.deadline_at))


def _deadline_passed(state: State, recorded: Recorded) -> Iterable[Key]:
    known = state.allocations.get(recorded.event.allocation_id)
    return () if known is None else _put(state, replace(known, deadline_passed=True))


def _kill_requested(state: State, recorded: Recorded) -> Iterable[Key]:
    known = state.allocations[recorded.event.allocation_id]
    return _put(state, replace(known, state="TERMINATING", killed=True))


def _ended(state: State, recorded: Recorded) -> Iterable[Key]:
    known = state.allocations.pop(recorded.event.allocation_id)
    yield "allocations", known.id
    if known.state == "PENDING":
        yield from _leave_queue(state, known)
    yield from _stir(state)


def _stir(state: State) -> Iterable[Key]:
    """Slots came or went: every pool's next pass may decide something new."""
    for name in state.pools:
        yield "pools", name


def _started(state: State, recorded: Recorded) -> Iterable[Key]:
    return _change_member(state, recorded.event, started=True)


def _exited(state: State, recorded: Recorded) -> Iterable[Key]:
    event: worker.AllocationExited = recorded.event
    return _change_member(state, event, over=True, exit_code=event.exit_code, message=event.message)


def _change_member(state: State, event: Any, **changes: Any) -> Iterable[Key]:
    known = state.allocations.get(event.allocation_id)
    if known is None:
        return ()
    members = tuple(
        replace(m, **changes) if m.worker_id == event.worker_id and not m.over else m for m in known.members
    )
    if all(m.started or m.over for m in members) and known.state == "ASSIGNED":
        known = replace(known, state="RUNNING")
    return _put(state, replace(known, members=members))


def _registered(state: State, recorded: Recorded) -> Iterable[Key]:
    event: worker.WorkerRegistered = recorded.event
    state.workers[event.worker_id] = Worker(
        id=event.worker_id,
        session=event.session,
        pool=event.pool,
        address=event.address,
        version=event.version,
        slots=event.slots,
        registered_at=recorded.at,
    )
    if event.pool not in state.pools:
        state.pools[event.pool] = Pool(event.pool)
    yield "workers", event.worker_id
    kept = set(event.running)
    for allocation in list(state.allocations.values()):
        if allocation.assigned <= event.reads_after and allocation.id not in kept:
            yield from _lose(state, allocation, event.worker_id)
    yield from _stir(state)


def _gone(state: State, recorded: Recorded) -> Iterable[Key]:
    known = state.workers.get(recorded.event.worker_id)
    if known is None:
        return
    left = isinstance(recorded.event, worker.WorkerLeft)
    if left and recorded.event.session != known.session:
        return
    state.workers[known.id] = replace(known, presence="left" if left else "lost")
    yield "workers", known.id
    for allocation in list(state.allocations.values()):
        yield from _lose(state, allocation, known.id)


def _lose(state: State, allocation: Allocation, worker_id: str) -> Iterable[Key]:
    if not any(m.worker_id == worker_id and not m.over for m in allocation.members):
        return ()
    members = tuple(
        replace(m, over=True, lost=True) if m.worker_id == worker_id and not m.over else m
        for m in allocation.members
    )
    return _put(state, replace(allocation, members=members))


_FOLDS: dict[type, Callable[[State, Recorded], Iterable[Key]]] = {
    searcher.ExperimentCreated: _experiment_created,
    searcher.ExperimentEnded: _experiment_ended,
    searcher.RunRequested: _run_requested,
    searcher.StopRequested: _stop_requested,
    checkpoints.DeletionRequested: _deletion_requested,
    scheduler.AllocationAssigned: _assigned,
    scheduler.PreemptRequested: _preempt_requested,
    scheduler.DeadlinePassed: _deadline_passed,
    scheduler.KillRequested: _kill_requested,
    scheduler.AllocationEnded: _ended,
    scheduler.WorkerLost: _gone,
    worker.WorkerRegistered: _registered,
    worker.WorkerLeft: _gone,
    worker.AllocationStarted: _started,
    worker.AllocationExited: _exited,
}
