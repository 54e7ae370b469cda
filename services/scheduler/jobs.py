"""Changes to a job's place in the queue and to its share (scheduling spec, section 6)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import msgspec
from msgspec import UNSET

from det_contracts.commands import ChangeJob
from det_contracts.events import scheduler
from det_contracts.ids import job_id
from det_contracts.problems import Problem, Refused, failed_precondition, invalid, not_found
from services.kit.authz.people import workspace_of
from services.kit.pool_bindings import check_pool
from services.kit.quotas.limits import workspace_name
from services.kit.rules import Call, Result
from services.scheduler.domain import Job, State
from services.scheduler.domain.state import job_queue_key
from services.scheduler.policy.queue import CannotMove, QueuedJob, move

replace = msgspec.structs.replace


def change_job(state: State, command: ChangeJob, call: Call) -> Result:
    """Apply all given changes to a job, or none of them."""
    current_job = _find_job(state, command.experiment_id)
    job = job_after_change(state, command, call.at)
    if job == current_job:
        return Result()
    return Result(
        [
            scheduler.JobChanged(
                experiment_id=job.experiment_id,
                pool=job.pool,
                priority=job.priority,
                weight=job.weight,
                max_slots=job.max_slots,
                position=job.position,
                reason=f"{_changed_fields(current_job, job)} changed by {command.user}",
            )
        ]
    )


def job_after_change(state: State, command: ChangeJob, at: float | None = None) -> Job:
    """Return the job as it would be after the change.

    `at` (seconds) bounds a move to the very end. Raises `Refused`.
    """
    job = _apply_pool(state, _find_job(state, command.experiment_id), command)
    job = _apply_priority(job, command)
    job = _apply_share(job, command)
    return _apply_position(state, job, command, at)


def _changed_fields(old: Job, new: Job) -> str:
    fields = {"pool": "resource pool", "max_slots": "max_slots", "position": "place in the queue"}
    names = ("pool", "priority", "weight", "max_slots", "position")
    return ", ".join(fields.get(n, n) for n in names if getattr(old, n) != getattr(new, n))


def _find_job(state: State, experiment_id: int) -> Job:
    if experiment_id not in state.jobs:
        raise not_found("job", job_id(experiment_id))
    return state.jobs[experiment_id]


def _apply_pool(state: State, job: Job, command: ChangeJob) -> Job:
    pool = command.resource_pool
    if pool is UNSET or pool == job.pool:
        return job
    if pool not in state.pools:
        raise unknown_pool(state, pool)
    location = state.homes.get(job.experiment_id)
    if location is not None:
        space = location.workspace_id or workspace_of(state, location.project_id)
        check_pool(state, pool, space, workspace_name(state, space))
    # Its place was one among the jobs of the other pool. In this one it begins with the time of its
    # submission.
    return replace(job, pool=pool, position="")


def unknown_pool(state: State, name: str) -> Refused:
    """The refusal of a pool that is not configured and has no workers."""
    pool_names = ", ".join(sorted(state.pools)) or "none"
    return Refused(Problem("not_found", f"resource pool '{name}' not found; there are: {pool_names}"))


def _apply_priority(job: Job, command: ChangeJob) -> Job:
    if command.priority is UNSET:
        return job
    if not 1 <= command.priority <= 99:
        raise invalid("priority must be between 1 and 99")
    return replace(job, priority=command.priority, position="")


def _apply_share(job: Job, command: ChangeJob) -> Job:
    if command.weight is not UNSET:
        if not command.weight > 0:
            raise invalid("weight must be greater than 0")
        job = replace(job, weight=command.weight)
    if command.max_slots is not UNSET:
        if command.max_slots is not None and command.max_slots < 0:
            raise invalid(f"max_slots must be 0 or more, not {command.max_slots}")
        job = replace(job, max_slots=command.max_slots)
    return job


def _apply_position(state: State, job: Job, command: ChangeJob, at: float | None) -> Job:
    ahead = command.ahead_of is not UNSET
    anchor_id = command.ahead_of if ahead else command.behind_of
    if anchor_id is UNSET or anchor_id == job.experiment_id:
        return job
    anchor = _find_job(state, anchor_id)
    settings = state.pools[job.pool].settings
    if settings.scheduler != "priority":
        raise failed_precondition(f"unable to perform operation on resource pool with {settings.scheduler}")
    if anchor.pool != job.pool:
        raise invalid(
            f"job of experiment {job.experiment_id} is in resource pool '{job.pool}', "
            f"that of experiment {anchor.experiment_id} in '{anchor.pool}': move it there first"
        )
    try:
        moved = move(
            [*_neighbours(state, anchor, job), _queued_job(job)],
            _queue_id(job),
            _queue_id(anchor),
            ahead=ahead,
            now=at,
        )
    except CannotMove as refusal:
        raise failed_precondition(str(refusal)) from None
    place = job.position if moved.position == job.queue_position else str(moved.position)
    return replace(job, priority=moved.priority, position=place)


def _neighbours(state: State, anchor: Job, job: Job) -> Iterable[QueuedJob]:
    """The anchor and its neighbours on both sides in the queue, excluding the job itself."""
    queue_key = job_queue_key(anchor)
    for neighbours in (
        state.job_order.descending_from(queue_key, 1),
        state.job_order.ascending_from(queue_key, 1),
    ):
        others = (state.jobs[key[-1]] for key in neighbours if key[-1] != job.experiment_id)
        # The anchor itself and the next job.
        yield from (_queued_job(other) for other in islice(others, 2))


def _queue_id(job: Job) -> str:
    return job_id(job.experiment_id)


def _queued_job(job: Job) -> QueuedJob:
    return QueuedJob(
        job_id=_queue_id(job),
        priority=job.priority,
        position=job.queue_position,
        submitted_at=job.submitted_at,
    )
