"""The jobs of the queue that have or want slots, in order.

Jobs that currently request nothing are not listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from services.scheduler.domain import Job, State
from services.scheduler.policy.records import Request

Listed = tuple[Job, int]
"""A job, and how many listed jobs are ahead of it; -1 if its pool has no order of jobs."""


def listed(state: State, pool: str) -> Iterator[Listed]:
    """The jobs of a pool. What is read costs little; what is not read costs nothing."""
    jobs = (state.jobs[id] for id in state.job_order.ids(pool))
    wanting = (job for job in jobs if _is_listed(state, job))
    ordered = _is_ordered(state, pool)
    return ((job, ahead if ordered else -1) for ahead, job in enumerate(wanting))


def place_of(state: State, experiment_id: int) -> Iterator[Listed]:
    """One job as in `listed`; nothing if it is not there."""
    job = state.jobs.get(experiment_id)
    if job is None or not _is_listed(state, job):
        return iter(())
    if not _is_ordered(state, job.pool):
        return iter([(job, -1)])
    return islice((place for place in listed(state, job.pool) if place[0] is job), 1)


def requests_of(state: State, job: Job) -> Iterator[Request]:
    """What a job has and wants in its pool. What still runs in an earlier pool does not count."""
    book, gate = state.index.books[job.pool], state.index.gate
    for id in state.occupancy.of_job(job.experiment_id):
        if id in book.running:
            yield book.running[id].request
        elif id in book.waiting:
            yield book.waiting[id]
        else:
            outside = gate.not_admitted_request(id)
            if outside is not None and outside.pool == job.pool:
                yield outside.request


def _is_listed(state: State, job: Job) -> bool:
    return next(requests_of(state, job), None) is not None


def _is_ordered(state: State, pool: str) -> bool:
    return state.pools[pool].settings.scheduler == "priority"
