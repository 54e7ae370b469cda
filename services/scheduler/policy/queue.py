"""The job queue of a pool: where jobs are, and how they are moved (scheduling spec, section 6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Context, Decimal
from typing import Literal

import msgspec

from services.scheduler.policy.book import Book
from services.scheduler.policy.records import Request

JobState = Literal["QUEUED", "SCHEDULED", "SCHEDULED_BACKFILLED"]
HEAD = Decimal(0)
UNIT = Decimal("1e-12")
"""The smallest step between two positions."""
# Each move between the same two jobs halves the gap; this is enough digits for a hundred such moves.
_EXACT = Context(prec=60)
_STATES: tuple[JobState, ...] = ("QUEUED", "SCHEDULED", "SCHEDULED_BACKFILLED")


class CannotMove(Exception):
    """A move that the queue does not allow; the message says why."""


class UnknownJob(CannotMove):
    """A move of, or relative to, a job that is not in the queue."""


class QueuedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job's place: smaller priorities first, and within a priority smaller positions."""

    job_id: str
    priority: int
    position: Decimal
    submitted_at: float = 0.0
    """Seconds since the epoch."""


class JobInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What the queue reports about a job."""

    state: JobState
    requested_slots: int
    allocated_slots: int


def initial_position(submitted_at: float) -> Decimal:
    """A job's initial position, which it also gets when its priority is set.

    It is the submission time in microseconds.
    """
    return Decimal(int(submitted_at * 1_000_000))


def move(
    jobs: Iterable[QueuedJob], job_id: str, anchor_id: str, *, ahead: bool, now: float | None = None
) -> QueuedJob:
    """Move a job directly ahead of or behind another one. Returns the job with its new place.

    `now` (seconds) bounds a move to the very end. Raises `UnknownJob`, or `CannotMove` if no position is left
    between the two neighbours.
    """
    jobs_by_id = {job.job_id: job for job in jobs}
    for id in (job_id, anchor_id):
        if id not in jobs_by_id:
            raise UnknownJob(f"job {id} is not in the queue of this resource pool")
    job, anchor = jobs_by_id[job_id], jobs_by_id[anchor_id]
    if job == anchor:
        return job
    beyond = neighbour(list(jobs_by_id.values()), job_id, anchor_id, ahead=ahead)
    moved = msgspec.structs.replace(job, priority=anchor.priority)
    end = HEAD if ahead else _end_position(anchor, now)
    limit = end if beyond is None else beyond.position
    low, high = (limit, anchor.position) if ahead else (anchor.position, limit)
    if low < job.position < high:
        return moved
    return msgspec.structs.replace(moved, position=_position_between(job, anchor, limit, ahead=ahead))


def neighbour(jobs: Sequence[QueuedJob], job_id: str, anchor_id: str, *, ahead: bool) -> QueuedJob | None:
    """The job next to the anchor on the side where the job goes; None at that end of the queue."""
    queue = sorted(
        (job for job in jobs if job.job_id != job_id),
        key=lambda job: (job.priority, job.position, job.submitted_at, job.job_id),
    )
    at = [job.job_id for job in queue].index(anchor_id) + (-1 if ahead else 1)
    return queue[at] if 0 <= at < len(queue) else None


def _end_position(anchor: QueuedJob, now: float | None) -> Decimal:
    return anchor.position + 2 if now is None else initial_position(now)


def _position_between(job: QueuedJob, anchor: QueuedJob, limit: Decimal, *, ahead: bool) -> Decimal:
    near = anchor.position
    position = _EXACT.divide(_EXACT.add(near, limit), Decimal(2))
    out_of_digits = near != limit and position in (near, limit)
    # The neighbour may have another priority, and then its position may be anywhere.
    if not out_of_digits and (position >= near if ahead else position <= near):
        position = _EXACT.subtract(near, UNIT) if ahead else _EXACT.add(near, UNIT)
    if position in (near, limit):
        raise CannotMove(f"unable to compute a new job position for job {job.job_id}")
    return position


def job_info(book: Book, requests: Sequence[Request]) -> JobInfo:
    """What the queue reports about a job, given all of its requests, in the book or kept out of it."""
    held = [r for r in requests if r.allocation_id in book.running]
    return JobInfo(
        state=_STATES[max(_state_index(book, request) for request in requests)],
        requested_slots=sum(r.slots for r in requests),
        allocated_slots=sum(r.slots for r in held),
    )


def _state_index(book: Book, request: Request) -> int:
    running = book.running.get(request.allocation_id)
    return 0 if running is None else 2 if running.backfilled else 1
