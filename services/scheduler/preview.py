"""Previews what a change of the queue would lead to."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from det_contracts.queries import PreviewChange
from services.scheduler.domain import Job, State
from services.scheduler.domain.index import group_of
from services.scheduler.domain.state import job_queue_key
from services.scheduler.jobs import job_after_change
from services.scheduler.listing import listed
from services.scheduler.policy.book import Book, book_of
from services.scheduler.policy.decide import decide
from services.scheduler.policy.records import Request, Running

replace = msgspec.structs.replace


def preview(state: State, query: PreviewChange) -> dict[str, list[int]]:
    """Return which jobs would be where, start at once, or be asked to exit. The queue is not changed."""
    state.index.gate.update_books()
    job = job_after_change(state, query.change)
    current_book = state.index.books[job.pool]
    changed_book = _book_with(current_book, job)
    before, after = decide(current_book), decide(changed_book)
    starts = {placement.allocation_id for placement in after.allocate} - {
        placement.allocation_id for placement in before.allocate
    }
    leaves = {release.allocation_id for release in after.release} - {
        release.allocation_id for release in before.release
    }
    return {
        "order": _order_with(state, job),
        "starts": _experiment_ids(state, starts),
        "leave": _experiment_ids(state, leaves),
    }


def _order_with(state: State, job: Job) -> list[int]:
    """The listed jobs of its pool in order, if this one is as given."""
    jobs = (
        job if listed_job.experiment_id == job.experiment_id else listed_job
        for listed_job, _ in listed(state, job.pool)
    )
    return [listed_job.experiment_id for listed_job in sorted(jobs, key=job_queue_key)]


def _experiment_ids(state: State, allocations: Iterable[str]) -> list[int]:
    return sorted({state.allocations[id].experiment_id for id in allocations})


def _book_with(book: Book, job: Job) -> Book:
    """A copy of the pool with the job as it would be. A job moved from another pool brings its requests."""
    mine = str(job.experiment_id)

    def with_position(request: Request) -> Request:
        return replace(request, position=job.queue_position) if request.group == mine else request

    changed_book = book_of(
        book.settings,
        agents=book.agents.values(),
        groups=book.groups | {mine: group_of(job)},
        running=[_with_request(running, with_position(running.request)) for running in book.running.values()],
        waiting=map(with_position, book.waiting.values()),
    )
    # Slots that are reserved for a trial between two runs count for its group, in the preview as well.
    for id, (group, slots) in book.expected.items():
        changed_book.expect(id, group, slots)
    return changed_book


def _with_request(running: Running, request: Request) -> Running:
    return replace(running, request=request)
