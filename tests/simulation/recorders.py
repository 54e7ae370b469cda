"""How each event of the log changes the ledger."""

from dataclasses import replace

from det_contracts.events import checkpoints, gateway, metrics, scheduler, searcher, trial, worker
from det_contracts.ids import owner_of_task
from services.searcher.methods import (
    TrialClosed,
    TrialCreated,
    TrialExitedEarly,
    TrialProgress,
    ValidationCompleted,
    start,
)
from tests.simulation.facts import Allocation, Experiment, History, OwnTask, Trial, Worker


def _experiment_created(ledger, event, position):
    config = event.config
    search, operations = start(
        config["searcher"], config["hyperparameters"], config["reproducibility"]["experiment_seed"]
    )
    experiment = Experiment(
        id=event.experiment_id,
        slots=config["resources"]["slots_per_trial"],
        max_restarts=config["max_restarts"],
        search=search,
        state=History("PAUSED"),
        created=position,
        user=event.user,
    )
    if event.source_checkpoint:
        ledger.sources.setdefault(event.source_checkpoint, []).append((position, experiment))
    experiment.max_slots = History(config["resources"]["max_slots"])
    experiment.pool = History(config["resources"]["resource_pool"] or "default")
    ledger.experiments[event.experiment_id] = experiment
    ledger.ask(experiment, operations, position)


def _validated(ledger, event, position):
    ledger.count("validations")
    ledger.decided.setdefault(("validated", event.trial_id), []).append((event.run, event.steps_completed))


def _state(name=None):
    def recorder(ledger, event, position):
        to = name or getattr(event, "to", None) or event.state
        ledger.experiments[event.experiment_id].state.add(position, to)

    return recorder


def _trial_created(ledger, event, position):
    experiment = ledger.experiments[event.experiment_id]
    experiment.trials[event.request_id] = event.trial_id
    ledger.trials[event.trial_id] = Trial(event.trial_id, experiment, event.request_id, History("ACTIVE"))
    ledger.advance(experiment, TrialCreated(event.request_id, event.hparams), position)
    ledger.count("trials")


def _operation_set(ledger, event, position):
    ledger.trials[event.trial_id].announced = event.seq
    if event.seq > 1:
        ledger.count("promotions")


def _idled(ledger, event, position):
    ledger.trials[event.trial_id].idled = event.seq


def _run_requested(ledger, event, position):
    trial_record = ledger.trials[event.trial_id]
    trial_record.run, trial_record.live, trial_record.exit = event.run, event.allocation_id, None
    ledger.allocations[event.allocation_id] = Allocation(
        id=event.allocation_id,
        kind="TRIAL",
        experiment_id=event.experiment_id,
        trial_id=event.trial_id,
        run=event.run,
        slots=event.slots,
        requested=position,
    )


def _deletion_requested(ledger, event, position):
    id = f"{event.task_id}.1"
    ledger.deletions[event.task_id] = position
    ledger.allocations[id] = Allocation(
        id, "CHECKPOINT_GC", event.experiment_id, None, 1, 0, position, event.pool
    )
    ledger.count("deletions")


def _task_submitted(ledger, event, position):
    id, owner = f"{event.task_id}.1", owner_of_task(event.number)
    ledger.tasks[owner] = OwnTask(owner, event.task_id, History(event.pool), History(None), event.user)
    ledger.allocations[id] = Allocation(id, event.kind, owner, None, 1, event.slots, position)
    ledger.count("own tasks")


def _task_stopped(ledger, event, position):
    task = next(task for task in ledger.tasks.values() if task.task_id == event.task_id)
    task.stopped = min(task.stopped, position)
    ledger.count("own tasks stopped")


def _run_ended(ledger, event, position):
    trial_record = ledger.trials[event.trial_id]
    trial_record.exit, trial_record.restarts = None, event.restarts


def _trial_stopping(ledger, event, position):
    ledger.trials[event.trial_id].state.add(position, event.to)


def _trial_ended(ledger, event, position):
    trial_record = ledger.trials[event.trial_id]
    trial_record.state.add(position, event.state)
    trial_record.exit, trial_record.live, trial_record.restarts = None, "", event.restarts
    if event.early_exit is not None:
        ledger.advance(
            trial_record.experiment, TrialExitedEarly(trial_record.request_id, event.early_exit), position
        )
    ledger.advance(trial_record.experiment, TrialClosed(trial_record.request_id), position)
    ledger.count(f"trials {event.state}")


def _assigned(ledger, event, position):
    allocation = ledger.allocations[event.allocation_id]
    allocation.parts, allocation.assigned, allocation.fenced = event.parts, position, event.fence_s > 0
    for part in event.parts:
        for slot in part.slots:
            ledger.slots[part.worker_id, slot] = allocation.id
        host = ledger.workers.get(part.worker_id)
        # Decided before it was known that the worker or the slots are gone.
        if host is None or host.presence != "here" or not set(part.slots) <= set(host.slots):
            _lose(allocation, part.worker_id, position, over=False)
    ledger.count("gangs" if len(event.parts) > 1 else "assignments")


def _preempted(ledger, event, position):
    ledger.allocations[event.allocation_id].preempted = position
    ledger.count("preemptions for others" if event.wanted_by else "preemptions")


def _killed(ledger, event, position):
    ledger.allocations[event.allocation_id].killed = position
    ledger.count("kills")


def _allocation_ended(ledger, event, position):
    allocation = ledger.allocations[event.allocation_id]
    allocation.outcome = event.outcome
    for part in allocation.parts:
        for slot in part.slots:
            ledger.slots.pop((part.worker_id, slot), None)
    owner = ledger.trials.get(allocation.trial_id)
    if owner is not None and owner.live == allocation.id:
        owner.live, owner.exit = "", event
    ledger.count(f"runs {event.outcome}")


def _on(ledger, worker_id):
    """Allocations with a live part on the worker."""
    return [
        a
        for a in ledger.allocations.values()
        if not a.outcome and any(p.worker_id == worker_id and not a.gone(worker_id) for p in a.parts)
    ]


def _lose(allocation, worker_id, position, over):
    """A part is lost; if hosts fence their runs, it is gone only once that is known."""
    if over or not allocation.fenced:
        allocation.lost[worker_id] = position
    else:
        allocation.cut_off.add(worker_id)


def _given_up(ledger, event, position):
    allocation = ledger.allocations.get(event.allocation_id)
    if allocation is not None and not allocation.gone(event.worker_id):
        allocation.lost[event.worker_id] = position
        ledger.count("given up")


def _registered(ledger, event, position):
    slots = tuple(slot.id for slot in event.slots)
    before = ledger.workers.get(event.worker_id)
    if (event.worker_id, event.session) in ledger.sessions:
        ledger.count("registrations repeated")
        return
    ledger.sessions.add((event.worker_id, event.session))
    if before is not None and before.presence == "here" and before.instance != event.instance:
        # Another one has the id.
        ledger.count("registrations refused")
        return
    knows = before is None or before.instance == event.instance
    for allocation in _on(ledger, event.worker_id):
        forgotten = allocation.assigned <= event.reads_after and allocation.id not in event.running
        held = {slot for part in allocation.parts if part.worker_id == event.worker_id for slot in part.slots}
        if forgotten or not held <= set(slots):
            _lose(allocation, event.worker_id, position, over=forgotten and knows)
    ledger.host(Worker(event.worker_id, event.session, event.pool, slots, event.instance), position)
    ledger.count("registrations")


def _worker_gone(ledger, event, position):
    host = ledger.workers.get(event.worker_id)
    left = isinstance(event, worker.WorkerLeft)
    # Schedulers of before name no session.
    counts_always = not left and not event.session
    if host is None or not (counts_always or host.session == event.session):
        return
    ledger.host(replace(host, presence="left" if left else "lost"), position)
    for allocation in _on(ledger, event.worker_id):
        _lose(allocation, event.worker_id, position, over=left)
    ledger.count("workers left" if left else "workers lost")


def _switched(ledger, event, position):
    slot = getattr(event, "slot_id", None)
    open_ = event.enabled and not event.draining
    ledger.switches.setdefault((event.worker_id, slot), History(True)).add(position, open_)
    ledger.count("switches")


def _job_changed(ledger, event, position):
    job = (ledger.tasks if event.experiment_id < 0 else ledger.experiments)[event.experiment_id]
    job.pool.add(position, event.pool)
    job.max_slots.add(position, event.max_slots)
    ledger.count("job changes")


def _started(ledger, event, position):
    allocation = ledger.allocations.get(event.allocation_id)
    if allocation is not None:
        allocation.started.setdefault(event.worker_id, position)


def _exited(ledger, event, position):
    allocation = ledger.allocations.get(event.allocation_id)
    if allocation is not None and not allocation.gone(event.worker_id):
        allocation.exits[event.worker_id] = event.exit_code
        if event.lost or event.worker_id in allocation.cut_off:
            allocation.lost[event.worker_id] = position


def _completed(ledger, event, position):
    trial_record = ledger.trial_of_fact(event)
    if (
        trial_record is None
        or not trial_record.operations()
        or trial_record.operations().now != (event.seq, event.length)
    ):
        return
    if event.seq in trial_record.completed:
        return
    trial_record.completed[event.seq] = position
    happened = ValidationCompleted(trial_record.request_id, event.metric, event.length)
    ledger.advance(trial_record.experiment, happened, position)
    ledger.count("completions")


def _progressed(ledger, event, position):
    trial_record = ledger.trial_of_fact(event)
    if trial_record is not None:
        ledger.advance(trial_record.experiment, TrialProgress(trial_record.request_id, event.units), position)


def _acknowledged(ledger, event, position):
    trial_record = ledger.trial_of_fact(event)
    if trial_record is not None:
        trial_record.acked.setdefault(event.run, position)
        ledger.count("acknowledgements")


def _early(ledger, event, position):
    trial_record = ledger.trial_of_fact(event)
    if trial_record is not None:
        trial_record.early.setdefault(event.run, (position, event.reason))
        ledger.count("early exits")


def _stored(ledger, event, position):
    if event.trial_id in ledger.trials:
        ledger.stored.setdefault(event.uuid, ledger.trials[event.trial_id].experiment)
    trial_record = ledger.trial_of_fact(event)
    # Of a report that comes twice, the first says when the checkpoint was stored.
    if trial_record is not None and event.uuid not in {uuid for _, uuid, _ in trial_record.checkpoints}:
        trial_record.checkpoints.append((position, event.uuid, event.steps_completed))
        ledger.count("checkpoints")


def _user_set(ledger, event, position):
    ledger.users.setdefault(event.username, (event.user_id, position))


def _group_set(ledger, event, position):
    ledger.groups.setdefault(event.group_id, History(())).add(position, event.members)


def _quota_set(ledger, event, position):
    ledger.quotas.setdefault(event.holder, History(None)).add(position, event.slots)
    ledger.count("quotas")


def _wanted(ledger, event, position):
    ledger.requested_workers[event.worker_id] = event.pool
    ledger.count("workers wanted")


def _released(ledger, event, position):
    ledger.given_back[event.worker_id] = position
    ledger.count("workers released")


def _dismissed(ledger, event, position):
    del ledger.requested_workers[event.worker_id]
    ledger.count("workers dismissed")


RECORDERS = {
    scheduler.WorkerWanted: _wanted,
    scheduler.WorkerReleased: _released,
    scheduler.WorkerDismissed: _dismissed,
    gateway.UserSet: _user_set,
    gateway.GroupSet: _group_set,
    gateway.QuotaSet: _quota_set,
    searcher.ExperimentCreated: _experiment_created,
    searcher.ExperimentActivated: _state("ACTIVE"),
    searcher.ExperimentPaused: _state("PAUSED"),
    searcher.ExperimentStopping: _state(),
    searcher.ExperimentEnded: _state(),
    searcher.ExperimentDeleting: _state("DELETING"),
    searcher.ExperimentDeleted: _state(),
    searcher.TrialCreated: _trial_created,
    searcher.OperationSet: _operation_set,
    searcher.TrialIdled: _idled,
    searcher.RunRequested: _run_requested,
    searcher.RunEnded: _run_ended,
    searcher.TrialStopping: _trial_stopping,
    searcher.TrialEnded: _trial_ended,
    metrics.Validated: _validated,
    checkpoints.DeletionRequested: _deletion_requested,
    scheduler.AllocationAssigned: _assigned,
    scheduler.PreemptRequested: _preempted,
    scheduler.KillRequested: _killed,
    scheduler.AllocationEnded: _allocation_ended,
    scheduler.WorkerLost: _worker_gone,
    scheduler.GivenUp: _given_up,
    scheduler.WorkerSwitched: _switched,
    scheduler.SlotSwitched: _switched,
    scheduler.JobChanged: _job_changed,
    scheduler.TaskSubmitted: _task_submitted,
    scheduler.TaskStopRequested: _task_stopped,
    worker.WorkerRegistered: _registered,
    worker.WorkerLeft: _worker_gone,
    worker.AllocationStarted: _started,
    worker.AllocationExited: _exited,
    trial.OperationCompleted: _completed,
    trial.Progressed: _progressed,
    trial.PreemptionAcknowledged: _acknowledged,
    trial.ExitedEarly: _early,
    trial.CheckpointStored: _stored,
}
