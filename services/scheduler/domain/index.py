"""The scheduler's records arranged for its passes: one book per pool, and the gate before them.

A function of the records alone, kept up as they change and built anew after a restart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from det_contracts.ids import job_id
from services.kit.authz.people import People
from services.kit.quotas.limits import account_of
from services.scheduler.domain.gate import Gate
from services.scheduler.domain.places import Places
from services.scheduler.domain.records import Allocation, Job, Pause, Pool, Worker, first_place
from services.scheduler.policy.book import Book
from services.scheduler.policy.records import Agent, Group, PoolSettings, Request, Share


class Index:
    """See the module."""

    def __init__(
        self,
        pools: Mapping[str, Pool],
        jobs: Mapping[int, Job],
        workers: Mapping[str, Worker],
        allocations: Mapping[str, Allocation],
        people: People,
        places: Places,
    ) -> None:
        self.books: dict[str, Book] = {}
        self.gate = Gate(people, self.books)
        """Before the books, for what quotas limit."""
        self._people = people
        self._places = places
        self._groups: dict[str, set[str]] = defaultdict(set)
        self._workers: dict[str, Worker] = {}
        for pool in pools.values():
            self.put_pool(pool)
        for job in jobs.values():
            self.put_job(job)
        for worker in workers.values():
            self.put_worker(worker)
        for allocation in sorted(allocations.values(), key=lambda a: a.requested):
            self.put_allocation(allocation, jobs.get(allocation.experiment_id))

    def put_pool(self, pool: Pool) -> None:
        """A pool is there, or changed its settings."""
        settings = policy_of(pool)
        if pool.name in self.books and self.books[pool.name].settings == settings:
            # Who waits where is as it was, however many wait.
            return
        if pool.name in self.books:
            self.books[pool.name].settings = settings
            self.gate.settings_changed()
        else:
            self.books[pool.name] = Book(settings)

    def put_job(self, job: Job) -> None:
        """A job is there, or its share changed; its requests are put again by whoever changed it."""
        for name in self.books:
            if name != job.pool:
                self._drop_group(name, str(job.experiment_id))
        self._put_group(job.pool, job)

    def drop_job(self, job: Job) -> None:
        """A job is over."""
        for name in self.books:
            self._drop_group(name, str(job.experiment_id))

    def put_worker(self, worker: Worker) -> None:
        """A worker is there, was switched, or went."""
        self._workers[worker.id] = worker
        for name, book in self.books.items():
            if name != worker.pool or worker.presence != "here":
                book.drop_agent(worker.id)
        if worker.presence == "here":
            self._put_agent(worker)
        self.gate.stir()

    def drop_worker(self, id: str) -> None:
        """A worker that was away is forgotten."""
        self._workers.pop(id, None)

    def _put_agent(self, worker: Worker) -> None:
        book = self.books[worker.pool]
        # A slot that is closed but still held counts as a held slot, not as a missing one.
        counted = {slot.id for slot in worker.slots if worker.slot_switch(slot.id).open}
        agent = Agent(
            id=worker.id,
            slots=len(counted | self._places.taken_on(worker.id)),
            enabled=worker.switch.enabled,
            draining=worker.switch.draining or worker.released,
        )
        book.put_agent(agent)

    def put_allocation(self, allocation: Allocation, job: Job | None) -> None:
        """An allocation is new, or changed."""
        book = self.books[allocation.pool]
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

    def drop_allocation(self, allocation: Allocation) -> None:
        """An allocation is over."""
        self.gate.leave(allocation.id)
        self.books[allocation.pool].leave(allocation.id)
        self._recount(allocation)

    def put_pause(self, pause: Pause, job: Job | None) -> None:
        """A trial may ask again any moment."""
        if job is not None and pause.pool != job.pool:
            self._put_group(pause.pool, job)
        self.books[pause.pool].expect(str(pause.trial_id), str(pause.experiment_id), pause.slots)

    def drop_pause(self, pause: Pause) -> None:
        """It is known whether it does."""
        self.books[pause.pool].expect(str(pause.trial_id), str(pause.experiment_id), 0)

    def _recount(self, allocation: Allocation) -> None:
        for member in allocation.members:
            worker = self._workers.get(member.worker_id)
            if worker is not None and worker.presence == "here" and (worker.slot_switches or worker.shrunk):
                self._put_agent(worker)

    def _put_group(self, pool: str, job: Job) -> None:
        name = str(job.experiment_id)
        self._groups[pool].add(name)
        self.books[pool].put_group(name, group_of(job))

    def _drop_group(self, pool: str, name: str) -> None:
        if name in self._groups[pool]:
            self._groups[pool].discard(name)
            self.books[pool].drop_group(name)

    def limited(self) -> Iterable[str]:
        """The pools in which somebody waits whom quotas limit: who is let in there may be another one now."""
        return self.gate.pools()

    def limits_changed(self) -> None:
        """Quotas, groups, or where projects are."""
        self.gate.limits_changed()

    def layer(self) -> Index:
        """For a state that is looked at ahead of the log."""
        return _NoBooks()


def _pass_by(*_: Any) -> None:
    """Nothing is kept up."""


_PASS_BY: Any = _pass_by


class _NoBooks(Index):
    """In the place of the books, where the state is one ahead of the log: rulings need none.

    Passes are made over what is in the log. A ruling that asks for a book all the same fails in such a view,
    and then is the first of the next round, which sees the state itself.
    """

    def __init__(self) -> None:
        # Without any of the fields: to miss one is an error, not an empty book.
        pass

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"the index has no '{name}' ahead of the log: rule by the records")

    put_pool = put_job = drop_job = put_worker = drop_worker = limits_changed = _PASS_BY
    put_allocation = drop_allocation = put_pause = drop_pause = _PASS_BY

    def limited(self) -> Iterable[str]:
        return ()


def policy_of(pool: Pool) -> PoolSettings:
    """A pool's settings as a policy sees them."""
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
    """What a job's owner chose, as a policy sees it."""
    return Group(
        priority=job.priority, weight=job.weight, max_slots=job.max_slots, registered=job.submitted_at
    )


def request_of(allocation: Allocation, job: Job | None) -> Request:
    """An allocation as a policy sees it."""
    submitted_at = job.submitted_at if job else allocation.requested_at
    return Request(
        allocation_id=allocation.id,
        job_id=job_id(allocation.experiment_id),
        group=str(allocation.experiment_id),
        slots=allocation.slots,
        preemptible=allocation.kind == "TRIAL",
        single_agent=allocation.kind != "TRIAL",
        position=job.place if job else first_place(submitted_at),
        submitted_at=submitted_at,
        # The log's order is finer than its clock: requests of one batch have the same time.
        requested_at=float(allocation.requested),
    )
