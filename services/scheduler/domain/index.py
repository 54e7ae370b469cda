"""The scheduler's records arranged for its passes: one book per pool, and the gate in front of them.

The index depends only on the records. It is updated as they change and rebuilt after a restart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from det_contracts.ids import job_id
from services.kit.authz.people import People
from services.kit.quotas.limits import account_of
from services.scheduler.domain.gate import Gate
from services.scheduler.domain.job_counts import JobCounts
from services.scheduler.domain.occupancy import Occupancy
from services.scheduler.domain.records import Allocation, Job, Pause, Pool, Worker, initial_position
from services.scheduler.policy.book import Book
from services.scheduler.policy.records import Agent, Group, PoolSettings, Request, Share


class Index:
    """The books of all pools and the gate. See the module docstring."""

    def __init__(
        self,
        pools: Mapping[str, Pool],
        jobs: Mapping[int, Job],
        workers: Mapping[str, Worker],
        allocations: Mapping[str, Allocation],
        people: People,
        occupancy: Occupancy,
    ) -> None:
        self.books: dict[str, Book] = {}
        self.gate = Gate(people, self.books)
        """In front of the books, for requests that quotas limit."""
        self.job_counts = JobCounts(self.books, self.gate)
        self._people = people
        self._allocations = allocations
        self._occupancy = occupancy
        self._groups: dict[str, set[str]] = defaultdict(set)
        self._workers: dict[str, Worker] = {}
        # In this order: jobs need the books of their pools, and allocations need jobs and workers.
        for pool in pools.values():
            self.put_pool(pool)
        for job in jobs.values():
            self.put_job(job)
        for worker in workers.values():
            self.put_worker(worker)
        # A database returns its rows in any order; what was requested first has to come first here as it
        # did in the fold.
        for allocation in sorted(allocations.values(), key=lambda a: a.requested):
            self.put_allocation(allocation, jobs.get(allocation.experiment_id))

    def put_pool(self, pool: Pool) -> None:
        """Add a pool, or apply its new settings."""
        settings = policy_of(pool)
        if pool.name in self.books and self.books[pool.name].settings == settings:
            # Unchanged settings leave the order of the waiting requests unchanged, so skip the reordering.
            return
        if pool.name in self.books:
            self.books[pool.name].settings = settings
            self.gate.settings_changed()
        else:
            self.books[pool.name] = Book(settings)

    def put_job(self, job: Job) -> None:
        """Add a job, or apply its new share. The caller puts the job's requests again."""
        for name in self.books:
            if name != job.pool:
                self._drop_group(name, str(job.experiment_id))
        self._put_group(job.pool, job)
        self.job_counts.put_job(str(job.experiment_id), job.pool)

    def drop_job(self, job: Job) -> None:
        """Remove a job that is over."""
        for name in self.books:
            self._drop_group(name, str(job.experiment_id))
        self.job_counts.drop_job(str(job.experiment_id))

    def put_worker(self, worker: Worker) -> None:
        """Add a worker, or update one that was switched or has gone."""
        self._workers[worker.id] = worker
        for name, book in self.books.items():
            if name != worker.pool or worker.presence != "here":
                book.drop_agent(worker.id)
        if worker.presence == "here":
            self._put_agent(worker)
        self.gate.mark_stale()

    def drop_worker(self, id: str) -> None:
        """Forget a worker that was away."""
        self._workers.pop(id, None)

    def _put_agent(self, worker: Worker) -> None:
        book = self.books[worker.pool]
        # A slot that is disabled but still held counts as a held slot, not as a missing one.
        counted = {slot.id for slot in worker.slots if worker.slot_switch(slot.id).open}
        agent = Agent(
            id=worker.id,
            slots=len(counted | self._occupancy.taken_on(worker.id)),
            enabled=worker.switch.enabled,
            draining=worker.switch.draining or worker.released,
            used_elsewhere=self._used_elsewhere(worker),
        )
        book.put_agent(agent)

    def _used_elsewhere(self, worker: Worker) -> tuple[int, int]:
        """What runs of other pools still use of a worker that was started again in this one."""
        parts = [
            member.slots
            for id in self._occupancy.held_on(worker.id)
            if (allocation := self._allocations[id]).pool != worker.pool
            for member in allocation.members
            if member.worker_id == worker.id
        ]
        return sum(map(len, parts)), sum(not slots for slots in parts)

    def put_allocation(self, allocation: Allocation, job: Job | None) -> None:
        """Add an allocation, or update a changed one."""
        book = self.books[allocation.pool]
        # What runs stays in its pool when its job is moved to another one.
        if job is not None and allocation.pool != job.pool:
            self._put_group(allocation.pool, job)
        request, limited = request_of(allocation, job), allocation.slots > 0
        account = account_of(self._people, allocation.experiment_id)
        if allocation.members:
            self._recount(allocation)
            shares = tuple(Share(m.worker_id, len(m.slots)) for m in allocation.members)
            if limited:
                self.gate.run(allocation.pool, request, account)
            book.run(
                request,
                shares,
                leaving=allocation.leaving,
                backfilled=allocation.backfilled,
            )
        elif allocation.stop:
            self.gate.leave(allocation.id)
            book.leave(allocation.id)
        elif limited:
            self.gate.wait(allocation.pool, request, account)
        else:
            book.wait(request)
        self.job_counts.update(request.group)

    def drop_allocation(self, allocation: Allocation) -> None:
        """Remove an allocation that is over."""
        self.gate.leave(allocation.id)
        self.books[allocation.pool].leave(allocation.id)
        self.job_counts.update(str(allocation.experiment_id))
        self._recount(allocation)

    def put_pause(self, pause: Pause, job: Job | None) -> None:
        """Reserve slots for a trial that may request a new run at any moment."""
        if job is not None and pause.pool != job.pool:
            self._put_group(pause.pool, job)
        self.books[pause.pool].expect(str(pause.trial_id), str(pause.experiment_id), pause.slots)

    def drop_pause(self, pause: Pause) -> None:
        """Drop the reservation: it is now known whether the trial runs again."""
        self.books[pause.pool].expect(str(pause.trial_id), str(pause.experiment_id), 0)

    def _recount(self, allocation: Allocation) -> None:
        for member in allocation.members:
            worker = self._workers.get(member.worker_id)
            if worker is None or worker.presence != "here":
                continue
            # Only then does what counts of its slots depend on which of them are held, and by which pool.
            if worker.slot_switches or worker.shrunk or worker.pool != allocation.pool:
                self._put_agent(worker)

    def _put_group(self, pool: str, job: Job) -> None:
        name = str(job.experiment_id)
        self._groups[pool].add(name)
        self.books[pool].put_group(name, group_of(job))

    def _drop_group(self, pool: str, name: str) -> None:
        if name in self._groups[pool]:
            self._groups[pool].discard(name)
            self.books[pool].drop_group(name)

    def limited_pools(self) -> Iterable[str]:
        """The pools in which quota-limited requests wait. Which of these are admitted may have changed."""
        return self.gate.limited_pools()

    def limits_changed(self) -> None:
        """Recompute the limits after quotas, groups or project locations changed."""
        self.gate.limits_changed()

    def layer(self) -> Index:
        """Return the index for a view of the state ahead of the log."""
        return _NoBooks()


def _do_nothing(*_: Any) -> None:
    """Does nothing: this view maintains no index."""


_DO_NOTHING: Any = _do_nothing


class _NoBooks(Index):
    """Replaces the index in a view of the state ahead of the log, where commands need no books.

    Passes run only over what is in the log. A command that uses a book anyway fails in such a view; it is
    then the first one of the next round, where it sees the real state.
    """

    def __init__(self) -> None:
        # Leave all fields unset, so that accessing one raises an error instead of returning an empty book.
        pass

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"the index has no '{name}' ahead of the log: rule by the records")

    put_pool = put_job = drop_job = put_worker = drop_worker = limits_changed = _DO_NOTHING
    put_allocation = drop_allocation = put_pause = drop_pause = _DO_NOTHING

    def limited_pools(self) -> Iterable[str]:
        return ()


def policy_of(pool: Pool) -> PoolSettings:
    """A pool's settings in the form that policies use."""
    settings = pool.settings
    return PoolSettings(
        type=settings.scheduler,
        fitting_policy=settings.fitting_policy,
        allow_heterogeneous_fits=settings.allow_heterogeneous_fits,
        preemption=settings.preemption,
        default_priority=settings.default_priority,
        max_aux_containers_per_agent=settings.max_aux_containers_per_agent,
    )


def group_of(job: Job) -> Group:
    """The settings that a job's owner chose, in the form that policies use."""
    return Group(
        priority=job.priority, weight=job.weight, max_slots=job.max_slots, registered=job.submitted_at
    )


def request_of(allocation: Allocation, job: Job | None) -> Request:
    """An allocation in the form that policies use."""
    submitted_at = job.submitted_at if job else allocation.requested_at
    return Request(
        allocation_id=allocation.id,
        job_id=job_id(allocation.experiment_id),
        group=str(allocation.experiment_id),
        slots=allocation.slots,
        preemptible=allocation.kind == "TRIAL",
        single_agent=allocation.kind != "TRIAL",
        position=job.queue_position if job else initial_position(submitted_at),
        submitted_at=submitted_at,
        # The log's order is finer than its clock: requests of one batch have the same time.
        requested_at=float(allocation.requested),
    )
