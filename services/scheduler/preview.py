"""Previews what a change of the queue would lead to."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from det_contracts.ids import job_id
from det_contracts.queries import PreviewChange
from services.scheduler.domain import Job, State
from services.scheduler.domain.index import group_of
from services.scheduler.jobs import changed
from services.scheduler.policy.book import Book, book_of
from services.scheduler.policy.decide import decide
from services.scheduler.policy.queue import jobs as queue_of
from services.scheduler.policy.records import Request, Running

replace = msgspec.structs.replace


def preview(state: State, query: PreviewChange) -> dict[str, list[int]]:
    """Return which jobs would be where, start at once, or be asked to exit. The queue is not changed."""
    state.index.gate.settle()
    job = changed(state, query.change)
    now = state.index.books[job.pool]
    then = _as_if(now, job)
    before, after = decide(now), decide(then)
    starts = {one.allocation_id for one in after.allocate} - {one.allocation_id for one in before.allocate}
    leaves = {one.allocation_id for one in after.release} - {one.allocation_id for one in before.release}
    ranks = {
        info.job_id: rank for rank, info in enumerate(queue_of(then, state.index.gate.outside(job.pool)))
    }
    order = sorted(
        (id for id in state.line.ids(job.pool) if job_id(id) in ranks), key=lambda id: ranks[job_id(id)]
    )
    return {"order": order, "starts": _owners(state, starts), "leave": _owners(state, leaves)}


def _owners(state: State, allocations: Iterable[str]) -> list[int]:
    return sorted({state.allocations[id].experiment_id for id in allocations})


def _as_if(book: Book, job: Job) -> Book:
    """A copy of the pool with the job as it would be. A job moved from another pool brings its requests."""
    mine = str(job.experiment_id)

    def put(request: Request) -> Request:
        return replace(request, position=job.place) if request.group == mine else request

    then = book_of(
        book.settings,
        agents=book.agents.values(),
        groups=book.groups | {mine: group_of(job)},
        running=[_running(one, put(one.request)) for one in book.running.values()],
        waiting=map(put, book.waiting.values()),
    )
    for id, (group, slots) in book.expected.items():
        then.expect(id, group, slots)
    return then


def _running(one: Running, request: Request) -> Running:
    return replace(one, request=request)
