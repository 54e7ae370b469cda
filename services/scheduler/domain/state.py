"""The scheduler's folded state, and the only code that stores or drops its records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import msgspec

from det_contracts.ids import job_id
from services.kit.idempotency import RequestResult, results_by_age
from services.kit.pool_bindings import Bindings
from services.kit.quotas.limits import account_of
from services.kit.quotas.usage import Usage
from services.kit.rules import derived
from services.kit.sorted_keys import SortedKeys
from services.scheduler.domain.index import Index
from services.scheduler.domain.occupancy import Occupancy
from services.scheduler.domain.records import Allocation, Deadline, Job, OwnTask, Pause, Pool, Totals, Worker
from services.scheduler.domain.supplies import Supplies

Key = tuple[str, Any]


@dataclass
class State(Supplies, Bindings):
    """Everything that the scheduler folds from the log."""

    workers: dict[str, Worker] = field(default_factory=dict)
    allocations: dict[str, Allocation] = field(default_factory=dict)
    jobs: dict[int, Job] = field(default_factory=dict)
    pools: dict[str, Pool] = field(default_factory=dict)
    deadlines: dict[str, Deadline] = field(default_factory=dict)
    """By allocation id."""
    pauses: dict[int, Pause] = field(default_factory=dict)
    """By trial id."""
    tasks: dict[str, OwnTask] = field(default_factory=dict)
    creations: dict[str, RequestResult] = field(default_factory=dict)
    totals: dict[str, Totals] = field(default_factory=dict)
    made_at: SortedKeys = derived()  # noqa: RUF009
    """(time, request id) for every creation"""
    due: SortedKeys = derived()  # noqa: RUF009
    """(due time, allocation) for every deadline"""
    paused: SortedKeys = derived()  # noqa: RUF009
    """(experiment, trial) for every pause"""
    pauses_due: SortedKeys = derived()  # noqa: RUF009
    """(due time, trial) for every pause"""
    job_order: SortedKeys = derived()  # noqa: RUF009
    """(pool, priority, place, submission, job, experiment) for every job, in queue order"""
    workers_in: SortedKeys = derived()  # noqa: RUF009
    """(pool, worker)"""
    owed: Usage = derived()  # noqa: RUF009
    """Jobs that have not ended, by number"""
    ended_tasks: SortedKeys = derived()  # noqa: RUF009
    """(end, task) for every user's own task that is over"""
    absent_workers: SortedKeys = derived()  # noqa: RUF009
    """(time it may be forgotten, worker) for every absent worker"""
    occupancy: Occupancy = derived()  # noqa: RUF009
    """Which allocations hold which slots, and which belong to a job"""
    index: Index = derived()  # noqa: RUF009
    """The same records, arranged for fast passes; see `Index`."""

    def __post_init__(self) -> None:
        self.made_at = results_by_age(self.creations)
        self.owed = Usage()
        for id in self.jobs:
            self.owed.set(id, account_of(self, id), 1)
        self.occupancy = Occupancy(self.allocations.values())
        self.index = Index(self.pools, self.jobs, self.workers, self.allocations, self, self.occupancy)
        for pause in self.pauses.values():
            self.index.put_pause(pause, self.jobs.get(pause.experiment_id))
        self.due = SortedKeys((deadline.due_at, id) for id, deadline in self.deadlines.items())
        self.paused = SortedKeys((pause.experiment_id, id) for id, pause in self.pauses.items())
        self.pauses_due = SortedKeys((pause.due_at, id) for id, pause in self.pauses.items())
        self.workers_in = SortedKeys((worker.pool, id) for id, worker in self.workers.items())
        self.job_order = SortedKeys(job_queue_key(job) for job in self.jobs.values())
        self.ended_tasks = SortedKeys((task.ended_at, id) for id, task in self.tasks.items() if task.over)
        places = map(_absence_key, self.workers.values())
        self.absent_workers = SortedKeys(place for place in places if place is not None)
        self.build_supply_indexes()

    def put_pool(self, pool: Pool) -> Iterable[Key]:
        """Store a pool."""
        self.pools[pool.name] = pool
        self.index.put_pool(pool)
        yield "pools", pool.name
        yield from self._touch_limited()

    def put_job(self, job: Job) -> Iterable[Key]:
        """Store a job, and move its requests to its current place."""
        previous_job = self.jobs.get(job.experiment_id)
        self.job_order.swap(job_queue_key(previous_job) if previous_job else None, job_queue_key(job))
        self.jobs[job.experiment_id] = job
        self.owed.set(job.experiment_id, account_of(self, job.experiment_id), 1)
        yield "jobs", job.experiment_id
        self.index.put_job(job)
        for trial_id in self.paused.ids(job.experiment_id):
            self.index.put_pause(self.pauses[trial_id], job)
        for id in self.occupancy.of_job(job.experiment_id):
            allocation = self.allocations[id]
            # Only what waits moves with its job. What runs would have to be stopped for it.
            if allocation.state == "PENDING" and allocation.pool != job.pool:
                self.index.drop_allocation(allocation)
                yield "pools", allocation.pool
                yield from self.put_allocation(msgspec.structs.replace(allocation, pool=job.pool))
            else:
                self.index.put_allocation(allocation, job)
        yield from self.touch_pool(job.pool)
        yield from self._touch_limited()

    def drop_job(self, experiment_id: int) -> Iterable[Key]:
        """Forget a job. Allocations that it still has keep running."""
        job = self.jobs.pop(experiment_id, None)
        if job is not None:
            self.job_order.discard(*job_queue_key(job))
            self.owed.remove(experiment_id)
            self.index.drop_job(job)
            for id in self.occupancy.of_job(experiment_id):
                self.index.put_allocation(self.allocations[id], None)
            yield "jobs", experiment_id

    def put_worker(self, worker: Worker) -> Iterable[Key]:
        """Store a worker."""
        previous_worker = self.workers.get(worker.id)
        self.workers_in.swap(
            (previous_worker.pool, previous_worker.id) if previous_worker else None, (worker.pool, worker.id)
        )
        self.absent_workers.swap(_absence_key(previous_worker), _absence_key(worker))
        self.workers[worker.id] = worker
        self.index.put_worker(worker)
        yield "workers", worker.id
        yield from self.touch_pool(worker.pool)
        yield from self._touch_limited()

    def put_allocation(self, allocation: Allocation) -> Iterable[Key]:
        """Store an allocation."""
        self.allocations[allocation.id] = allocation
        self.occupancy.put(allocation)
        self.index.put_allocation(allocation, self.jobs.get(allocation.experiment_id))
        yield "allocations", allocation.id
        yield from self._touch_limited()

    def drop_allocation(self, allocation: Allocation) -> Iterable[Key]:
        """Forget an allocation, which frees its slots."""
        del self.allocations[allocation.id]
        self.occupancy.drop(allocation)
        self.index.drop_allocation(allocation)
        yield "allocations", allocation.id
        yield from self.drop_deadline(allocation.id)
        # Workers may have moved to another pool while it ran, where it kept slots from others.
        workers = (self.workers.get(member.worker_id) for member in allocation.members)
        for pool in dict.fromkeys([allocation.pool, *(worker.pool for worker in workers if worker)]):
            yield from self.touch_pool(pool)
        yield from self._touch_limited()

    def put_deadline(self, allocation_id: str, deadline: Deadline) -> Iterable[Key]:
        """Set the deadline of an allocation, replacing any earlier one."""
        yield from self.drop_deadline(allocation_id)
        self.due.add(deadline.due_at, allocation_id)
        self.deadlines[allocation_id] = deadline
        yield "deadlines", allocation_id

    def drop_deadline(self, allocation_id: str) -> Iterable[Key]:
        """Drop the deadline of an allocation."""
        deadline = self.deadlines.pop(allocation_id, None)
        if deadline is not None:
            self.due.discard(deadline.due_at, allocation_id)
            yield "deadlines", allocation_id

    def put_pause(self, pause: Pause) -> Iterable[Key]:
        """Store a trial's pause between two runs."""
        previous_pause = self.pauses.get(pause.trial_id)
        before = (previous_pause.experiment_id, previous_pause.trial_id) if previous_pause else None
        self.paused.swap(before, (pause.experiment_id, pause.trial_id))
        due_before = (previous_pause.due_at, previous_pause.trial_id) if previous_pause else None
        self.pauses_due.swap(due_before, (pause.due_at, pause.trial_id))
        self.pauses[pause.trial_id] = pause
        self.index.put_pause(pause, self.jobs.get(pause.experiment_id))
        yield "pauses", pause.trial_id

    def drop_pause(self, trial_id: int) -> Iterable[Key]:
        """Forget a pause: the searcher has judged the run."""
        pause = self.pauses.pop(trial_id, None)
        if pause is not None:
            self.paused.discard(pause.experiment_id, trial_id)
            self.pauses_due.discard(pause.due_at, trial_id)
            self.index.drop_pause(pause)
            yield "pauses", trial_id
            yield from self.touch_pool(pause.pool)

    def limits_changed(self) -> Iterable[Key]:
        """Quotas, group memberships or project locations changed."""
        # Groups and projects change often, and without quotas that means nothing here.
        if self.quotas or self.index.limited_pools():
            yield from self._touch_limited()
            # Pools are touched before and after it, because a pool may have limited requests only before, or
            # only after.
            self.index.limits_changed()
            yield from self._touch_limited()

    def _touch_limited(self) -> Iterable[Key]:
        """Touch every pool in which limited requests wait, since a pass over it may decide something new."""
        for name in self.index.limited_pools():
            yield "pools", name

    def touch_pool(self, name: str) -> Iterable[Key]:
        """Touch a pool, since a pass over it may decide something new."""
        if name not in self.pools:
            yield from self.put_pool(Pool(name=name))
        yield "pools", name


def _absence_key(worker: Worker | None) -> tuple[float, str] | None:
    until = worker.known_until if worker is not None else None
    return (until, worker.id) if worker is not None and until is not None else None


def job_queue_key(job: Job) -> tuple[str, int, Decimal, float, str, int]:
    """The sort key of a job. It starts with the pool, so each pool's queue is contiguous."""
    return (
        job.pool,
        job.priority,
        job.queue_position,
        job.submitted_at,
        job_id(job.experiment_id),
        job.experiment_id,
    )
