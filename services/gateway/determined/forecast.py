"""When jobs of the queue would end and start, at the present pace: an estimate for people who wait."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush

import msgspec

from det_contracts import ids
from services.catalogue.domain import State
from services.catalogue.peers import Job, PoolRow

LEAST_PROGRESS = 0.01
"""Before that much is done nobody can say how long the rest takes."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What a forecast takes of one job; jobs are in the order of the queue."""

    owner: int
    pool: str
    needs: int = 0
    """Slots that must be free at once for it to begin; 0: it needs none, or has begun."""
    holds: int = 0
    left_s: float | None = None
    """Until it ends; None where nobody can tell."""


def left_of(row: Job, state: State, progress: Mapping[int, float], now: float) -> float | None:
    """Seconds until an experiment ends that has got on since it began; a pause in between counts as work."""
    share, experiment = progress.get(row.experiment_id, 0.0), state.experiments.get(row.experiment_id)
    first = state.trials.get(experiment.first_trial or 0) if experiment else None
    run = state.allocations.get(ids.allocation_id(first.task_id, 1)) if first else None
    if run is None or run.started_at is None or share < LEAST_PROGRESS:
        return None
    return max(0.0, (now - run.started_at) * (1 - share) / share)


def standing(rows: Iterable[Job], state: State, progress: Mapping[int, float], now: float) -> list[Standing]:
    """The rows of a queue as a forecast takes them."""
    return [_standing(row, state, left_of(row, state, progress, now)) for row in rows]


def _standing(row: Job, state: State, left: float | None) -> Standing:
    submission = state.submissions.get(row.experiment_id)
    resources = submission.config.get("resources") if submission else None
    each = (resources or {}).get("slots_per_trial") or row.slots_requested
    waits = row.state == "QUEUED"
    return Standing(
        owner=row.experiment_id,
        pool=row.pool,
        needs=min(each, row.slots_requested) if waits else 0,
        holds=row.slots_allocated,
        left_s=left,
    )


def starts(jobs: Iterable[Standing], pools: Iterable[PoolRow]) -> dict[int, float]:
    """Seconds until jobs that wait would begin, each after those before it; without those nobody can tell.

    A job that its pool can never hold stands in nobody's way.
    """
    found: dict[int, float] = {}
    by_pool: dict[str, list[Standing]] = {}
    for job in jobs:
        by_pool.setdefault(job.pool, []).append(job)
    for pool in pools:
        found |= _starts(by_pool.get(pool.name, []), pool)
    return found


def never(jobs: Iterable[Standing], pools: Iterable[PoolRow]) -> set[int]:
    """Jobs that no agents of their pool could ever hold; while a pool has no agent, that is true of none."""
    most = {pool.name: pool.slots for pool in pools if pool.workers}
    return {job.owner for job in jobs if job.needs > most.get(job.pool, job.needs)}


def _starts(jobs: list[Standing], pool: PoolRow) -> dict[int, float]:
    free, now, found = pool.slots - pool.slots_used, 0.0, {}
    ends = [(job.left_s, job.holds) for job in jobs if job.holds and job.left_s is not None]
    heapify(ends)
    for job in jobs:
        if not 0 < job.needs <= pool.slots:
            continue
        while free < job.needs and ends:
            now, back = heappop(ends)
            free += back
        if free < job.needs:
            break
        found[job.owner] = now
        free -= job.needs
        if job.left_s is not None:
            heappush(ends, (now + job.left_s, job.needs))
    return found
