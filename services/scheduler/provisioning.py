"""What the provisioner reports to the scheduler, and what the scheduler answers."""

from __future__ import annotations

from typing import Any

from det_contracts.events import scheduler
from det_contracts.provisioning import ReportWorkers, SeenWorker
from det_contracts.queries import Provisioning
from services.kit.rules import Call, Result
from services.scheduler.domain import State
from services.scheduler.domain.supply import Provisioned, Supply
from services.scheduler.growth import format_time
from services.scheduler.jobs import unknown_pool


def report_workers(state: State, command: ReportWorkers, call: Call) -> Result:
    """Record what an engine reports for the first time. Reports about workers that are over are ignored."""
    if command.pool not in state.pools:
        raise unknown_pool(state, command.pool)
    events: list[Any] = []
    supply = state.supplies.get(command.pool) or Supply(pool=command.pool)
    reason = f"reported by {command.user}"
    # Engines are asked every few seconds; only what is new becomes an event (decision 55).
    if supply.problem != command.problem:
        events.append(scheduler.EngineReported(pool=command.pool, problem=command.problem, reason=reason))
    for report in command.workers:
        known_worker = state.provisioned.get(report.worker_id)
        if (
            known_worker is not None
            and known_worker.pool == command.pool
            and _has_changed(report, known_worker)
        ):
            events.append(
                scheduler.ProvisionReported(
                    worker_id=known_worker.id,
                    pool=known_worker.pool,
                    phase=report.phase,
                    detail=report.detail,
                    ends_at=report.ends_at,
                    reason=reason,
                )
            )
    return Result(events)


def _has_changed(report: SeenWorker, known_worker: Provisioned) -> bool:
    return (report.phase, report.detail, report.ends_at) != (
        known_worker.phase,
        known_worker.detail,
        known_worker.ends_at,
    )


def provisioning(state: State, query: Provisioning) -> list[dict[str, Any]]:
    """The pools that provision workers, and the workers that they have requested."""
    names = state.pools if query.pool is None else {query.pool} & state.pools.keys()
    growing = (name for name in names if state.pools[name].settings.provider or state.count_provisioned(name))
    return [_pool_row(state, name) for name in sorted(growing)]


def _pool_row(state: State, name: str) -> dict[str, Any]:
    supply = state.supplies.get(name)
    ids = sorted(state.provisioned_by_standing.ids(name), key=lambda id: state.provisioned[id].number)
    return {
        "pool": name,
        "newest": supply.newest if supply else 0,
        "problem": supply.problem if supply else "",
        "workers": [_worker_row(state.provisioned[id]) for id in ids],
    }


def _worker_row(worker: Provisioned) -> dict[str, Any]:
    names = ("id", "number", "phase", "detail", "ends_at", "released", "here", "busy")
    return {name: getattr(worker, name) for name in names}


def describe_supply(state: State, pool: str) -> str:
    """The state of a pool's provisioning in one sentence, for users whose tasks wait; "" if it has none."""
    settings = state.pools[pool].settings if pool in state.pools else None
    if settings is None or settings.provider is None:
        return ""
    supply = state.supplies.get(pool) or Supply(pool=pool)
    if supply.problem:
        return (
            f"The pool cannot grow: its engine ({settings.provider.type}) does not answer: {supply.problem}"
        )
    if coming := _describe_coming(state, pool):
        return coming
    if supply.retry_at:
        return (
            f"The pool waits before it asks for another worker: {supply.failures} failed, {supply.failure}. "
            f"It tries again at {format_time(supply.retry_at)}."
        )
    most = settings.provider.max_instances
    if state.count_provisioned(pool) >= most:
        return f"The pool has as many workers as it may (max_instances is {most})."
    return ""


def _describe_coming(state: State, pool: str) -> str:
    """A description of the workers that were requested and are not there yet; "" if there are none."""
    key_prefixes = [(pool, standing, False) for standing in ("spare", "idle")]
    count = sum(state.provisioned_by_standing.count(*key_prefix) for key_prefix in key_prefixes)
    oldest = [
        key
        for key_prefix in key_prefixes
        # The index holds negated numbers, so the last key is the oldest worker.
        if (key := next(state.provisioned_by_standing.descending(*key_prefix), None))
    ]
    if not oldest:
        return ""
    first = state.provisioned[min(oldest, key=lambda key: -key[3])[-1]]
    more = f" and {count - 1} more" if count > 1 else ""
    detail = f" ({first.detail})" if first.detail else ""
    return f"The pool grows: {first.id}{more} was asked for and is {first.phase}{detail}."
