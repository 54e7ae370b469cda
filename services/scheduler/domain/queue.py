"""How events change pools, jobs and requests."""

from __future__ import annotations

from collections.abc import Iterable

from det_contracts import ids
from det_contracts.envelope import Recorded
from det_contracts.events import checkpoints, gateway, scheduler, searcher
from services.scheduler.domain.records import DEFAULT_POOL, Allocation, Job, OwnTask, Pool, Totals
from services.scheduler.domain.state import Key, State


def pool_configured(state: State, recorded: Recorded) -> Iterable[Key]:
    """The cluster configuration added or changed a pool."""
    event: scheduler.PoolConfigured = recorded.event
    yield from state.put_pool(Pool(name=event.pool, description=event.description, settings=event.settings))
    # Their shapes in the book contain the pool's `max_aux_containers_per_agent`.
    for id in list(state.workers_in.ids(event.pool)):
        yield from state.put_worker(state.workers[id])


def experiment_created(state: State, recorded: Recorded) -> Iterable[Key]:
    """Add a job to the queue. Unmanaged experiments, which run outside the cluster, have none."""
    event: searcher.ExperimentCreated = recorded.event
    if event.unmanaged:
        return
    resources = event.config.get("resources") or {}
    pool = resources.get("resource_pool") or DEFAULT_POOL
    yield from state.touch_pool(pool)
    yield from state.put_job(
        Job(
            experiment_id=event.experiment_id,
            submitted_at=recorded.at,
            pool=pool,
            priority=resources.get("priority") or state.pools[pool].settings.default_priority,
            weight=resources.get("weight") or 1.0,
            max_slots=resources.get("max_slots"),
        )
    )


def experiment_moved(state: State, recorded: Recorded) -> Iterable[Key]:
    """The job may now count towards another workspace's quota."""
    event: gateway.ExperimentMoved = recorded.event
    job = state.jobs.get(event.experiment_id)
    return state.put_job(job) if job is not None else ()


def experiment_ended(state: State, recorded: Recorded) -> Iterable[Key]:
    """Remove a job from the queue."""
    return state.drop_job(recorded.event.experiment_id)


def job_changed(state: State, recorded: Recorded) -> Iterable[Key]:
    """A person changed a job's place or share."""
    event: scheduler.JobChanged = recorded.event
    job = state.jobs.get(event.experiment_id)
    if job is None:
        return
    yield from state.touch_pool(event.pool)
    yield from state.put_job(
        Job(
            experiment_id=job.experiment_id,
            submitted_at=job.submitted_at,
            pool=event.pool,
            priority=event.priority,
            weight=event.weight,
            max_slots=event.max_slots,
            position=event.position,
        )
    )


def run_requested(state: State, recorded: Recorded) -> Iterable[Key]:
    """A trial requests slots."""
    event: searcher.RunRequested = recorded.event
    job = state.jobs.get(event.experiment_id)
    return _add_request(
        state,
        Allocation(
            id=event.allocation_id,
            task_id=event.task_id,
            kind="TRIAL",
            experiment_id=event.experiment_id,
            trial_id=event.trial_id,
            run=event.run,
            slots=event.slots,
            # The job may have been moved since the searcher read its configuration.
            pool=job.pool if job else event.pool,
            requested_at=recorded.at,
            requested=recorded.position,
        ),
    )


def deletion_requested(state: State, recorded: Recorded) -> Iterable[Key]:
    """A request to delete checkpoints, which a zero-slot task does."""
    event: checkpoints.DeletionRequested = recorded.event
    return _add_request(
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
            requested_at=recorded.at,
            requested=recorded.position,
        ),
    )


def task_submitted(state: State, recorded: Recorded) -> Iterable[Key]:
    """A user's own task requests slots; it gets a job of its own."""
    event: scheduler.TaskSubmitted = recorded.event
    owner = ids.owner_of_task(event.number)
    yield from _put_task(state, event.task_id, OwnTask(event.number))
    # The number has a record of its own, because tasks that ended long ago are forgotten and numbers
    # are never reused.
    state.totals["all"] = Totals(max(state.totals.get("all", Totals()).tasks, event.number))
    yield "totals", "all"
    yield from state.touch_pool(event.pool)
    priority = event.priority or state.pools[event.pool].settings.default_priority
    yield from state.put_job(
        Job(experiment_id=owner, submitted_at=recorded.at, pool=event.pool, priority=priority)
    )
    yield from _add_request(
        state,
        Allocation(
            id=ids.allocation_id(event.task_id, 1),
            task_id=event.task_id,
            kind=event.kind,
            experiment_id=owner,
            trial_id=None,
            run=1,
            slots=event.slots,
            pool=event.pool,
            requested_at=recorded.at,
            requested=recorded.position,
        ),
    )


def task_ended(state: State, allocation: Allocation, at: float) -> Iterable[Key]:
    """Remove the job of a task that has ended: a task runs only once."""
    task = state.tasks.get(allocation.task_id)
    if task is not None:
        yield from _put_task(state, allocation.task_id, OwnTask(task.number, over=True, ended_at=at))
        yield from state.drop_job(ids.owner_of_task(task.number))


def task_forgotten(state: State, recorded: Recorded) -> Iterable[Key]:
    """Forget a task that ended long ago."""
    id = recorded.event.task_id
    task = state.tasks.pop(id, None)
    if task is not None:
        state.ended_tasks.discard(task.ended_at, id)
        yield "tasks", id


def _put_task(state: State, id: str, task: OwnTask) -> Iterable[Key]:
    previous_task = state.tasks.get(id)
    before = (previous_task.ended_at, id) if previous_task is not None and previous_task.over else None
    state.ended_tasks.swap(before, (task.ended_at, id) if task.over else None)
    state.tasks[id] = task
    yield "tasks", id


def _add_request(state: State, allocation: Allocation) -> Iterable[Key]:
    yield from state.touch_pool(allocation.pool)
    yield from state.put_allocation(allocation)
