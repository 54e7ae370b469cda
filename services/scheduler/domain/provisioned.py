"""How events change the workers that pools requested.

What an engine reports about a worker and whether the worker is registered are independent facts. If they
disagree, the worker is trusted: an engine may forget what it has started, or report as running a worker that
never comes up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from det_contracts.envelope import Recorded
from det_contracts.events import scheduler
from services.scheduler.domain.state import Key, State
from services.scheduler.domain.supply import Provisioned, Supply

replace = msgspec.structs.replace
MISSING_GRACE_S = 30.0
"""How long an engine may omit a worker from its lists before the worker counts as gone, in seconds.

Lists can lag.
"""
MIN_BACKOFF_S = 15.0
MAX_BACKOFF_S = 900.0
"""The back-off after failures, in seconds: doubled with each failure, up to this maximum."""


def is_released(state: State, worker_id: str) -> bool:
    """Whether a worker is being given back."""
    requested_worker = state.provisioned.get(worker_id)
    return requested_worker is not None and bool(requested_worker.released)


def is_busy(state: State, worker_id: str) -> bool:
    """Whether anything holds a part of a worker."""
    return bool(state.occupancy.held_on(worker_id))


def wanted(state: State, recorded: Recorded) -> Iterable[Key]:
    """A pool requested a worker."""
    event: scheduler.WorkerWanted = recorded.event
    yield from state.put_provisioned(
        Provisioned(
            id=event.worker_id,
            pool=event.pool,
            number=event.number,
            wanted_at=recorded.at,
            idle_by=recorded.at + _settings(state, event.pool).max_idle_s,
        )
    )
    yield from state.put_supply(replace(_supply(state, event.pool), newest=event.number))


def reported(state: State, recorded: Recorded) -> Iterable[Key]:
    """An engine reported something new about a worker."""
    event: scheduler.ProvisionReported = recorded.event
    requested_worker = state.provisioned.get(event.worker_id)
    if requested_worker is None:
        return
    settings = _settings(state, requested_worker.pool)
    changes: dict[str, Any] = {"phase": event.phase, "detail": event.detail, "ends_at": event.ends_at}
    if event.phase != requested_worker.phase:
        missing = event.phase == "missing"
        changes |= {
            "gone": event.phase == "over",
            "gone_by": recorded.at + MISSING_GRACE_S if missing else 0.0,
        }
    # From its first report on and never again: an engine that alternates between two phases must not
    # extend the time.
    if (
        event.phase == "running"
        and not requested_worker.here
        and not requested_worker.start_by
        and not requested_worker.late
    ):
        changes["start_by"] = recorded.at + settings.max_starting_s
    if event.phase == "queued":
        # It waits for a host, possibly for a second time. It cannot register before it has one.
        changes |= {"start_by": 0.0, "late": False}
    if event.ends_at != requested_worker.ends_at:
        notice = max(event.ends_at - settings.notice_s, recorded.at) if event.ends_at else 0.0
        begins = event.phase == "running" and requested_worker.phase != "running"
        changes |= {"notice_by": notice, "ending": False, "too_short": begins and notice == recorded.at}
    yield from state.put_provisioned(replace(requested_worker, **changes))


def refresh_worker(state: State, worker_id: str, at: float) -> Iterable[Key]:
    """Update a worker's record after the worker itself, or what runs on it, may have changed."""
    requested_worker = state.provisioned.get(worker_id)
    if requested_worker is None:
        return
    worker = state.workers.get(worker_id)
    here = worker is not None and worker.presence == "here"
    busy = is_busy(state, worker_id)
    settings = _settings(state, requested_worker.pool)
    closed = here and worker is not None and not worker.switch.open
    changes: dict[str, Any] = {"here": here, "busy": busy, "closed": closed}
    if here and not requested_worker.here:
        changes |= {"was_here": True, "start_by": 0.0, "late": False}
    if requested_worker.here and not here:
        changes["start_by"] = at + settings.max_starting_s
    if busy:
        changes |= {"idle_by": 0.0, "idle": False}
    elif requested_worker.busy or (here and not requested_worker.here):
        changes |= {"idle_by": at + settings.max_idle_s, "idle": False}
    supply = state.supplies.get(requested_worker.pool)
    # One that is being given back shows nothing about the next.
    proves_pool = here and not requested_worker.here and not requested_worker.released
    if proves_pool and supply is not None:
        changes["forgiven"] = max(requested_worker.forgiven, supply.failures)
    changed = replace(requested_worker, **changes)
    if changed != requested_worker:
        yield from state.put_provisioned(changed)
    # A worker that registers proves that the engine works, so the pool need not hold back any longer.
    if proves_pool and supply is not None:
        yield from state.put_supply(replace(supply, failures=0, failure="", retry_at=0.0))


def time_passed(state: State, recorded: Recorded) -> Iterable[Key]:
    """A time that a worker waited for has come; stop waiting for it."""
    event: scheduler.WorkerTimePassed = recorded.event
    requested_worker = state.provisioned.get(event.worker_id)
    if requested_worker is None:
        return
    clocks = {"start_by": "late", "idle_by": "idle", "gone_by": "gone", "notice_by": "ending"}
    # All that are due by then: the index holds only the earliest of them.
    passed = [clock for clock in clocks if 0.0 < getattr(requested_worker, clock) <= event.due_at]
    changes = {clock: 0.0 for clock in passed} | {clocks[clock]: True for clock in passed}
    yield from state.put_provisioned(replace(requested_worker, **changes))


def released(state: State, recorded: Recorded) -> Iterable[Key]:
    """A worker is being given back: it gets no new work."""
    event: scheduler.WorkerReleased = recorded.event
    requested_worker = state.provisioned.get(event.worker_id)
    if requested_worker is None:
        return
    yield from state.put_provisioned(
        replace(requested_worker, released=event.reason, idle_by=0.0, start_by=0.0, notice_by=0.0)
    )
    if event.worker_id in state.workers:
        yield from state.put_worker(replace(state.workers[event.worker_id], released=True))
    for id in state.occupancy.held_on(event.worker_id):
        yield "allocations", id
    if event.failed:
        yield from _record_failure(
            state, requested_worker.pool, event.reason, recorded.at, requested_worker.forgiven
        )


def dismissed(state: State, recorded: Recorded) -> Iterable[Key]:
    """Nothing is left of a worker."""
    event: scheduler.WorkerDismissed = recorded.event
    yield from state.drop_provisioned(event.worker_id)
    if event.failed:
        yield from _record_failure(state, event.pool, event.reason, recorded.at)


def engine_reported(state: State, recorded: Recorded) -> Iterable[Key]:
    """A pool's engine became unreachable, or is reachable again."""
    event: scheduler.EngineReported = recorded.event
    return state.put_supply(replace(_supply(state, event.pool), problem=event.problem))


def retry_due(state: State, recorded: Recorded) -> Iterable[Key]:
    """A pool may request workers again."""
    return state.put_supply(replace(_supply(state, recorded.event.pool), retry_at=0.0))


def _record_failure(state: State, pool: str, reason: str, at: float, forgiven: int = 0) -> Iterable[Key]:
    supply = _supply(state, pool)
    failures = max(supply.failures, forgiven)
    # The exponent is bounded because a pool may fail for years, and a power beyond a float's range
    # raises an error in the fold.
    pause = min(MIN_BACKOFF_S * 2 ** min(failures, 16), MAX_BACKOFF_S)
    failed = replace(supply, failures=failures + 1, failure=reason, retry_at=at + pause)
    return state.put_supply(failed)


def _supply(state: State, pool: str) -> Supply:
    return state.supplies.get(pool) or Supply(pool=pool)


def _settings(state: State, pool: str) -> scheduler.Provider:
    """The pool's provider settings. If they were removed, the workers requested earlier get the defaults."""
    stored_pool = state.pools.get(pool)
    return (stored_pool.settings.provider if stored_pool else None) or scheduler.Provider(type="process")
