"""Folds events about allocations, and their effect on the displayed states of trials and experiments."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from det_contracts import ids
from det_contracts.envelope import Recorded
from det_contracts.events import checkpoints, gateway, scheduler, searcher, worker
from det_contracts.states import later_state
from services.catalogue.domain.indexed_records import (
    close_allocation,
    drop_allocation,
    held_slots,
    open_allocation,
    put_experiment,
    put_share,
    put_trial,
)
from services.catalogue.domain.running_time import running_s, slot_s
from services.catalogue.domain.small_records import TaskOwner
from services.catalogue.domain.state import (
    Allocation,
    Experiment,
    OwnTask,
    Phase,
    Share,
    State,
    Trial,
)
from services.kit.rules import Key

replace = msgspec.structs.replace


def requested(state: State, recorded: Recorded) -> Iterable[Key]:
    """A trial requested slots for a run."""
    event: searcher.RunRequested = recorded.event
    trial = state.trials[event.trial_id]
    # Later runs continue from the trial's own checkpoint, which is not what the trial was started from.
    warm = event.checkpoint if event.run == 1 else trial.warm_start
    changed = replace(
        trial, run=event.run, allocation_id=event.allocation_id, runner_state="", warm_start=warm
    )
    yield from put_trial(state, changed)
    yield from open_allocation(
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
        ),
    )
    yield from _change_phase(state, event.allocation_id, "", "QUEUED", recorded.at)


def opened(state: State, recorded: Recorded) -> Iterable[Key]:
    """A script outside the cluster started a run. A previous run of the trial ends."""
    event: searcher.RunOpened = recorded.event
    trial = state.trials[event.trial_id]
    yield from close_run(state, trial, recorded.at, "a newer run of the trial was started")
    changed = replace(
        state.trials[trial.id],
        own="ACTIVE",
        state="ACTIVE",
        ended_at=None,
        reason=event.reason,
        restarts=event.run - 1,
        run=event.run,
        allocation_id=event.allocation_id,
        runner_state=trial.runner_state if trial.run == event.run else "",
    )
    yield from put_trial(state, changed)
    # A script that reconnects opens the same run again; its time counts from the first start.
    previous = state.allocations.get(event.allocation_id)
    yield from open_allocation(
        state,
        Allocation(
            id=event.allocation_id,
            task_id=event.task_id,
            kind="TRIAL",
            experiment_id=event.experiment_id,
            trial_id=event.trial_id,
            run=event.run,
            slots=0,
            pool="",
            priority=0,
            requested_at=previous.requested_at if previous else recorded.at,
            started_at=previous.started_at if previous else recorded.at,
            state="RUNNING",
        ),
    )
    yield from _change_phase(state, event.allocation_id, "", "RUNNING", recorded.at)


def close_run(state: State, trial: Trial, at: float, reason: str, *, stopped: bool = False) -> Iterable[Key]:
    """End the current run of an unmanaged trial, for which no scheduler reports the end.

    With `stopped`, a person stopped the trial, and its script is told to leave when it asks.
    """
    id = trial.allocation_id
    if id is None or id not in state.live or not state.experiments[trial.experiment_id].unmanaged:
        return
    ended_run = replace(
        state.allocations[id], ended_at=at, state="TERMINATED", asked_to_leave=stopped, reason=reason
    )
    yield from close_allocation(state, ended_run)
    yield from _change_phase(state, id, "RUNNING", "", at)


def submitted(state: State, recorded: Recorded) -> Iterable[Key]:
    """A user's task was submitted and requests slots."""
    event: scheduler.TaskSubmitted = recorded.event
    state.tasks[event.task_id] = OwnTask(
        id=event.task_id,
        number=event.number,
        kind=event.kind,
        user=event.user,
        name=event.name,
        config=event.config,
        workspace_id=event.workspace_id,
        priority=event.priority,
        submitted_at=recorded.at,
    )
    yield "tasks", event.task_id
    yield from open_allocation(
        state,
        Allocation(
            id=ids.allocation_id(event.task_id, 1),
            task_id=event.task_id,
            kind=event.kind,
            experiment_id=ids.owner_of_task(event.number),
            trial_id=None,
            run=1,
            slots=event.slots,
            pool=event.pool,
            priority=event.priority or 0,
            requested_at=recorded.at,
        ),
    )


def task_forgotten(state: State, recorded: Recorded) -> Iterable[Key]:
    """A task that ended long ago was forgotten. Its run stays for reports on past use, if it held slots."""
    id = recorded.event.task_id
    task = state.tasks.pop(id, None)
    if task is None:
        return
    yield "tasks", id
    run = state.allocations[ids.allocation_id(id, 1)]
    if held_slots(run):
        state.allocations[run.id] = replace(run, task_owner=TaskOwner(task.user, task.workspace_id))
        yield "allocations", run.id
    else:
        yield from drop_allocation(state, run)


def deletion_opened(state: State, recorded: Recorded) -> Iterable[Key]:
    """A deletion task was requested. It is listed while it waits, too."""
    event: checkpoints.DeletionRequested = recorded.event
    yield from open_allocation(
        state,
        Allocation(
            id=ids.allocation_id(event.task_id, 1),
            task_id=event.task_id,
            kind="CHECKPOINT_GC",
            experiment_id=event.experiment_id,
            trial_id=None,
            run=1,
            slots=0,
            pool=event.pool,
            priority=0,
            requested_at=recorded.at,
        ),
    )


def served(state: State, recorded: Recorded) -> Iterable[Key]:
    """A task serves HTTP."""
    event: gateway.Served = recorded.event
    task = state.tasks.get(ids.task_of(event.allocation_id))
    if task is not None:
        state.tasks[task.id] = replace(task, address=event.address, account=event.account)
        yield "tasks", task.id


def assigned(state: State, recorded: Recorded) -> Iterable[Key]:
    """An allocation got slots."""
    event: scheduler.AllocationAssigned = recorded.event
    if event.allocation_id not in state.allocations:
        yield from open_allocation(
            state,
            Allocation(
                id=event.allocation_id,
                task_id=event.task_id,
                kind=event.kind,
                experiment_id=event.experiment_id,
                trial_id=event.trial_id,
                run=event.run,
                slots=sum(len(part.slots) for part in event.parts),
                pool="default",
                priority=0,
                requested_at=recorded.at,
            ),
        )
    allocation = state.allocations[event.allocation_id]
    state.allocations[allocation.id] = replace(
        allocation, members=event.parts, state=later_state(allocation.state, "ASSIGNED"), reason=event.reason
    )
    yield "allocations", allocation.id


def started(state: State, recorded: Recorded) -> Iterable[Key]:
    """One member's process started."""
    event: worker.AllocationStarted = recorded.event
    allocation = state.allocations.get(event.allocation_id)
    # A worker reports its start again after it reconnects, and a late report must not revive a run that the
    # scheduler has ended.
    if allocation is None or allocation.ended_at is not None or event.worker_id in allocation.there:
        return
    # The first member's start is the run's: slots are held from there on, and the wait for the others is part
    # of its time.
    first = allocation.started_at is None
    state.allocations[allocation.id] = replace(
        allocation,
        there=(*allocation.there, event.worker_id),
        started_at=recorded.at if first else allocation.started_at,
        state=later_state(allocation.state, "RUNNING"),
    )
    yield "allocations", allocation.id
    if first:
        yield from _change_phase(state, allocation.id, "QUEUED", "RUNNING", recorded.at)


def preemption_requested(state: State, recorded: Recorded) -> Iterable[Key]:
    """The allocation was asked to save a checkpoint and leave."""
    allocation = state.allocations.get(recorded.event.allocation_id)
    if allocation is not None:
        state.allocations[allocation.id] = replace(allocation, asked_to_leave=True)
        yield "allocations", allocation.id


def gather_joined(state: State, recorded: Recorded) -> Iterable[Key]:
    """A member contributed its share to an all-gather."""
    event: gateway.GatherJoined = recorded.event
    # A share may stand in the log behind the end of its run, since two services decide about them.
    if event.allocation_id not in state.live:
        return
    share = Share(event.request_id, event.data)
    yield from put_share(state, event.allocation_id, event.peers, share)


def ended(state: State, recorded: Recorded) -> Iterable[Key]:
    """All members of an allocation have exited."""
    event: scheduler.AllocationEnded = recorded.event
    allocation = state.allocations.get(event.allocation_id)
    # The first end counts: what runs would otherwise be counted down twice.
    if allocation is None or allocation.ended_at is not None:
        return
    ended_run = replace(
        allocation, ended_at=recorded.at, state="TERMINATED", outcome=event.outcome, reason=event.reason
    )
    yield from close_allocation(state, ended_run)
    old: Phase = "QUEUED" if allocation.started_at is None else "RUNNING"
    yield from _change_phase(state, allocation.id, old, "", recorded.at)


def _change_phase(state: State, allocation_id: str, old: Phase, new: Phase, at: float) -> Iterable[Key]:
    """Move an allocation's count, and its trial's phase, from the old phase to the new one."""
    allocation = state.allocations[allocation_id]
    if allocation.trial_id is None:
        return
    experiment = state.experiments[allocation.experiment_id]
    queued = experiment.queued + (new == "QUEUED") - (old == "QUEUED")
    begins = (new == "RUNNING") - (old == "RUNNING")
    changed = _count_running(replace(experiment, queued=queued), begins, allocation.slots, at)
    yield from put_experiment(state, changed)
    trial = state.trials[allocation.trial_id]
    # The trial may already wait for its next run, whose phase it shows.
    if trial.allocation_id == allocation_id:
        yield from put_trial(state, replace(trial, phase=new))


def _count_running(experiment: Experiment, begins: int, slots: int, at: float) -> Experiment:
    """Count one more running allocation, one less, or as many as before."""
    if not begins:
        return experiment
    return replace(
        experiment,
        running=experiment.running + begins,
        running_slots=experiment.running_slots + begins * slots,
        counted_at=at,
        past_running_s=running_s(experiment, at),
        past_slot_s=slot_s(experiment, at),
    )
