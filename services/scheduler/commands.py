"""Commands that the scheduler accepts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from det_contracts import ids
from det_contracts.commands import (
    AskToLeave,
    ChangeJob,
    ConfigurePools,
    MarkDaemon,
    StateIdle,
    StopTask,
    SubmitTask,
    SwitchSlot,
    SwitchWorker,
)
from det_contracts.events import scheduler
from det_contracts.problems import failed_precondition, invalid, not_found
from det_contracts.provisioning import ReportWorkers
from services.kit.authz.people import check_workspace
from services.kit.idempotency import idempotent
from services.kit.pool_bindings import check_pool
from services.kit.quotas.limits import check_jobs, workspace_name
from services.kit.quotas.usage import Account
from services.kit.rules import Call, Result
from services.scheduler.domain import Allocation, Pool, State, Worker
from services.scheduler.jobs import change_job, unknown_pool
from services.scheduler.provisioning import report_workers
from services.scheduler.steps import PREEMPTION_DEADLINE_S


class ReportSilence(msgspec.Struct, frozen=True, tag="report_silence"):
    """Sent by the heartbeat monitor beside the scheduler when a worker has been silent for too long."""

    worker_id: str
    session: str
    silent_s: float
    user: str = "scheduler"


def report_silence(state: State, command: ReportSilence, call: Call) -> Result:
    """Declare the worker lost, unless it has already gone or has registered again with a new session."""
    worker = state.workers.get(command.worker_id)
    # The monitor may have looked before the worker registered again: a new session means that it is alive.
    if worker is None or worker.presence != "here" or worker.session != command.session:
        return Result()
    reason = f"no heartbeat from worker {worker.id} for {command.silent_s:.0f} s"
    return Result([scheduler.WorkerLost(worker.id, reason, worker.session)])


class GiveUp(msgspec.Struct, frozen=True, tag="give_up"):
    """Sent by the same monitor once a lost worker's host has had time to end its part of an allocation."""

    allocation_id: str
    worker_id: str
    waited_s: float
    user: str = "scheduler"


def give_up(state: State, command: GiveUp, call: Call) -> Result:
    """Declare the part over, unless its end was reported in the meantime. A lost part never comes back."""
    allocation = state.allocations.get(command.allocation_id)
    parts = allocation.members if allocation is not None else ()
    # A part whose worker has returned reports its own end.
    if not any(m.worker_id == command.worker_id and m.lost and not m.over for m in parts):
        return Result()
    reason = f"worker {command.worker_id} was lost {command.waited_s:.0f} s ago: its host has ended it by now"
    return Result([scheduler.GivenUp(command.allocation_id, command.worker_id, reason)])


def configure_pools(state: State, command: ConfigurePools, call: Call) -> Result:
    """Apply the configured pool settings. Pools that the configuration does not name are left unchanged."""
    events = []
    for name, settings in command.pools.items():
        wanted = Pool(name=name, description=command.descriptions.get(name, ""), settings=settings)
        if state.pools.get(name) != wanted:
            events.append(
                scheduler.PoolConfigured(
                    pool=name,
                    description=wanted.description,
                    settings=settings,
                    reason=f"set by {command.user}",
                )
            )
    return Result(events)


def switch_worker(state: State, command: SwitchWorker, call: Call) -> Result:
    """Enable or disable a worker. Does nothing if it is already in that state."""
    worker = _present_worker(state, command.worker_id)
    draining = command.drain and not command.enabled
    if (worker.switch.enabled, worker.switch.draining) == (command.enabled, draining):
        return Result()
    return Result(
        [
            scheduler.WorkerSwitched(
                worker_id=worker.id,
                enabled=command.enabled,
                draining=draining,
                reason=_switch_reason(command),
            )
        ]
    )


def switch_slot(state: State, command: SwitchSlot, call: Call) -> Result:
    """Enable or disable a slot. Does nothing if it is already in that state."""
    worker = _present_worker(state, command.worker_id)
    if all(slot.id != command.slot_id for slot in worker.slots):
        raise not_found("slot", f"{worker.id}/{command.slot_id}")
    draining = command.drain and not command.enabled
    switch = worker.slot_switch(command.slot_id)
    if (switch.enabled, switch.draining) == (command.enabled, draining):
        return Result()
    return Result(
        [
            scheduler.SlotSwitched(
                worker_id=worker.id,
                slot_id=command.slot_id,
                enabled=command.enabled,
                draining=draining,
                reason=_switch_reason(command),
            )
        ]
    )


def submit_task(state: State, command: SubmitTask, call: Call) -> Result:
    """Queue a task for slots. It may wait indefinitely: workers with enough slots may register later."""
    if command.task_id in state.tasks:
        # The gateway chose the id and repeats the command if no answer came, so it may be here already.
        return Result(value=command.task_id)
    if not ids.is_token(command.task_id):
        raise invalid(f"task id '{command.task_id}' must be letters, digits, '-' and '_'")
    if command.slots < 0:
        raise invalid(f"resources.slots is {command.slots}: it must be 0 or more")
    if command.priority is not None and not 1 <= command.priority <= 99:
        raise invalid("priority must be between 1 and 99")
    # `default` is there before any worker or configuration names it.
    if command.pool not in state.pools and command.pool != "default":
        raise unknown_pool(state, command.pool)
    check_workspace(state, command.workspace_id)
    check_pool(state, command.pool, command.workspace_id, workspace_name(state, command.workspace_id))
    check_jobs(state, state.owed, Account(command.user, -command.workspace_id))
    # Not the number of known tasks: those that ended long ago are forgotten, and numbers are never used
    # again.
    totals = state.totals.get("all")
    number = (totals.tasks if totals else 0) + 1
    submitted = scheduler.TaskSubmitted(
        task_id=command.task_id,
        number=number,
        kind=command.kind,
        user=command.user,
        name=command.name,
        config=command.config,
        context=command.context,
        slots=command.slots,
        pool=command.pool,
        priority=command.priority,
        workspace_id=command.workspace_id,
        agent_user=command.agent_user,
        reason=f"submitted by {command.user}",
    )
    return Result([submitted], command.task_id)


def stop_task(state: State, command: StopTask, call: Call) -> Result:
    """Stop a task. Does nothing if it is over or already stopping."""
    if command.task_id not in state.tasks:
        raise not_found("task", command.task_id)
    allocation = state.allocations.get(ids.allocation_id(command.task_id, 1))
    if allocation is None or allocation.stop:
        return Result()
    return Result([scheduler.TaskStopRequested(command.task_id, f"killed by {command.user}")])


def state_idle(state: State, command: StateIdle, call: Call) -> Result:
    """Start or stop the idle timeout of a task.

    Does nothing if the task already has that state or is over.
    """
    if command.task_id not in state.tasks:
        raise not_found("task", command.task_id)
    allocation = state.allocations.get(ids.allocation_id(command.task_id, 1))
    if allocation is None or allocation.leaving or allocation.late or bool(allocation.idle_s) == command.idle:
        return Result()
    if command.within_s <= 0:
        raise invalid(f"task {command.task_id} has no idle_timeout, so reporting it idle has no effect")
    reason = "nobody uses it" if command.idle else "it is used again"
    return Result(
        [
            scheduler.TaskIdled(
                task_id=command.task_id, idle=command.idle, within_s=command.within_s, reason=reason
            )
        ]
    )


def mark_daemon(state: State, command: MarkDaemon, call: Call) -> Result:
    """Mark a part as a daemon that only serves the others.

    Does nothing if it is the only other part left, or is already marked.
    """
    allocation = _live_allocation(state, command.allocation_id)
    member = next((m for m in allocation.members if m.rank == command.rank), None)
    if member is None:
        raise not_found("resources", f"{allocation.id}-{command.rank}")
    others = [m for m in allocation.members if m.rank != command.rank and not m.daemon]
    if member.daemon or not others:
        return Result()
    reason = f"requested by part {command.rank}"
    return Result([scheduler.DaemonMarked(allocation_id=allocation.id, rank=command.rank, reason=reason)])


def ask_to_leave(state: State, command: AskToLeave, call: Call) -> Result:
    """Ask an allocation to save its work and exit. Does nothing if it was already asked."""
    allocation = _live_allocation(state, command.allocation_id)
    if allocation.leaving or allocation.state == "PENDING":
        return Result()
    return Result(
        [
            scheduler.PreemptRequested(
                allocation_id=allocation.id,
                reason=f"its host asks it to leave, according to {command.user}",
                within_s=PREEMPTION_DEADLINE_S,
            )
        ]
    )


def _live_allocation(state: State, allocation_id: str) -> Allocation:
    allocation = state.allocations.get(allocation_id)
    if allocation is None:
        raise not_found("live allocation", allocation_id)
    return allocation


def _switch_reason(command: SwitchWorker | SwitchSlot) -> str:
    done = "enabled" if command.enabled else "drained" if command.drain else "disabled"
    return f"{done} by {command.user}"


def _present_worker(state: State, worker_id: str) -> Worker:
    worker = state.workers.get(worker_id)
    if worker is None or worker.presence == "left":
        raise not_found("agent", worker_id)
    if worker.presence == "lost":
        raise failed_precondition(f"agent disconnected, wait for recovery: {worker_id}")
    return worker


COMMANDS: dict[Any, Callable[[State, Any, Call], Result]] = {
    ReportSilence: report_silence,
    GiveUp: give_up,
    ReportWorkers: report_workers,
    ConfigurePools: configure_pools,
    SwitchWorker: switch_worker,
    SwitchSlot: switch_slot,
    ChangeJob: change_job,
    SubmitTask: idempotent(submit_task, scheduler.CreationKept),
    StopTask: stop_task,
    StateIdle: state_idle,
    MarkDaemon: mark_daemon,
    AskToLeave: ask_to_leave,
}
