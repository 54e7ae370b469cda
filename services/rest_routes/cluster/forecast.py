"""Estimates when queued jobs will start and end at the current pace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush

import msgspec

from services.catalogue.domain import Experiment, State
from services.catalogue.domain.running_time import running_s
from services.catalogue.peers import Job, PoolRow

MIN_PROGRESS = 0.01
"""Minimum share of progress below which the remaining time cannot be estimated."""


class ForecastInput(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of a forecast about one job. Jobs are in queue order."""

    owner: int
    pool: str
    needs: int = 0
    """Slots that must be free at once for the job to start; 0 if it needs none or has started."""
    holds: int = 0
    left_s: float | None = None
    """Remaining seconds; None if unknown."""


def remaining_s(row: Job, state: State, progress: Mapping[int, float], now: float) -> float | None:
    """Remaining seconds of an experiment that has made progress, at the pace at which it ran so far."""
    share, experiment = progress.get(row.experiment_id, 0.0), state.experiments.get(row.experiment_id)
    ran = running_s(experiment, now) if experiment is not None else 0.0
    return None if ran <= 0 or share < MIN_PROGRESS else max(0.0, ran * (1 - share) / share)


def forecast_inputs(
    rows: Iterable[Job], state: State, progress: Mapping[int, float], now: float
) -> list[ForecastInput]:
    """Convert the rows of a queue to inputs of a forecast."""
    return [_forecast_input(row, state, remaining_s(row, state, progress, now)) for row in rows]


def _forecast_input(row: Job, state: State, left: float | None) -> ForecastInput:
    each = _slots_per_trial(state, row.experiment_id) or row.slots_requested
    waits = row.state == "QUEUED"
    return ForecastInput(
        owner=row.experiment_id,
        pool=row.pool,
        needs=min(each, row.slots_requested) if waits else 0,
        holds=row.slots_allocated,
        left_s=left,
    )


def _slots_per_trial(state: State, experiment_id: int) -> int | None:
    submission = state.submissions.get(experiment_id)
    resources = submission.config.get("resources") if submission else None
    slots_per_trial: int | None = (resources or {}).get("slots_per_trial")
    return slots_per_trial


def start_times(jobs: Iterable[ForecastInput], pools: Iterable[PoolRow]) -> dict[int, float]:
    """Seconds until waiting jobs start, in queue order; jobs whose start is unknown are left out.

    A job that its pool can never hold does not block the others.
    """
    starts: dict[int, float] = {}
    by_pool: dict[str, list[ForecastInput]] = {}
    for job in jobs:
        by_pool.setdefault(job.pool, []).append(job)
    for pool in pools:
        starts |= _pool_start_times(by_pool.get(pool.name, []), pool)
    return starts


def unschedulable_jobs(jobs: Iterable[ForecastInput], pools: Iterable[PoolRow]) -> set[int]:
    """Jobs too large for all agents of their pool together. None in a pool that has no agents yet."""
    most = {pool.name: pool.slots for pool in pools if pool.workers}
    return {job.owner for job in jobs if job.needs > most.get(job.pool, job.needs)}


def unschedulable_experiments(
    waiting: Iterable[Experiment], state: State, pools: Iterable[PoolRow]
) -> set[int]:
    """The same of experiments, whose trials all need as many slots, without asking for the whole queue."""
    needs = (
        ForecastInput(
            owner=experiment.id, pool=experiment.pool, needs=_slots_per_trial(state, experiment.id) or 0
        )
        for experiment in waiting
    )
    return unschedulable_jobs(needs, pools)


def _pool_start_times(jobs: list[ForecastInput], pool: PoolRow) -> dict[int, float]:
    free, now, starts = pool.slots - pool.slots_used, 0.0, {}
    ends = [(job.left_s, job.holds) for job in jobs if job.holds and job.left_s is not None]
    heapify(ends)
    for job in jobs:
        if not 0 < job.needs <= pool.slots:
            continue
        while free < job.needs and ends:
            now, released_slots = heappop(ends)
            free += released_slots
        # The queue is in order: whoever is behind a job of unknown start has an unknown start, too.
        if free < job.needs:
            break
        starts[job.owner] = now
        free -= job.needs
        if job.left_s is not None:
            heappush(ends, (now + job.left_s, job.needs))
    return starts
