"""Computes what an engine must do from what the scheduler wants and what the engine lists. Pure.

Nothing is remembered between looks, so a provisioner that was killed continues where it was. Each worker has
its id forever: whatever is listed under an id was started for that worker, however long ago.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from det_contracts.events.scheduler import Phase
from det_contracts.provisioning import SeenWorker
from services.provisioner.engines.protocol import ListedWorker


class DesiredWorker(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that a pool has requested, as the scheduler reports it."""

    id: str
    number: int
    phase: Phase
    detail: str = ""
    ends_at: float = 0.0
    released: str = ""
    """Why it is being given back; "" if it is not."""
    here: bool = False
    busy: bool = False


class DesiredPool(msgspec.Struct, frozen=True, kw_only=True):
    """What the scheduler wants for one pool."""

    pool: str
    newest: int = 0
    problem: str = ""
    """The last reported problem with the pool's engine, as the scheduler knows it."""
    workers: tuple[DesiredWorker, ...] = ()


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The resulting actions for the engine and the scheduler."""

    start: tuple[str, ...] = ()
    stop: tuple[ListedWorker, ...] = ()
    forget: tuple[ListedWorker, ...] = ()
    report: tuple[SeenWorker, ...] = ()


def plan(desired: DesiredPool, listed_workers: Sequence[ListedWorker]) -> Plan:
    """Compute the plan; see the module docstring.

    The engine must have been listed before `desired` was queried.
    """
    wanted = {worker.id: worker for worker in desired.workers}
    by_id: dict[str, list[ListedWorker]] = {}
    for listed_worker in listed_workers:
        by_id.setdefault(listed_worker.worker_id, []).append(listed_worker)
    stop, report = list[ListedWorker](), list[SeenWorker]()
    for id, listed in by_id.items():
        alive = sorted(
            (listed_worker for listed_worker in listed if listed_worker.phase != "over"), key=_preference
        )
        if id not in wanted:
            # Newer than anything in this answer: another provisioner has started it in the meantime.
            stop += alive if 0 < _number(id, desired.pool) <= desired.newest else ()
            continue
        # One too many for its id: an engine started it twice, or the answer to the first request was lost.
        stop += alive[1:]
        # What runs there still saves its work, as it was asked to.
        if wanted[id].released and not wanted[id].busy:
            stop += alive[:1]
        report += _changes(wanted[id], (alive or listed)[0])
    unlisted = [worker for worker in desired.workers if worker.id not in by_id]
    report += [news for worker in unlisted for news in _unlisted_reports(worker)]
    return Plan(
        start=tuple(worker.id for worker in unlisted if worker.phase == "wanted" and not worker.released),
        stop=tuple(stop),
        forget=tuple(
            listed_worker
            for listed_worker in listed_workers
            if listed_worker.phase == "over" and listed_worker.worker_id not in wanted
        ),
        report=tuple(report),
    )


def _preference(worker: ListedWorker) -> tuple[bool, str]:
    """Of several instances started for one id, keep the running one, else the one with the first handle."""
    return worker.phase != "running", worker.handle


def _number(id: str, pool: str) -> int:
    """The worker's number in the pool; 0 for an id that this pool never assigned."""
    number = id.removeprefix(f"{pool}-")
    return int(number) if number != id and number.isdecimal() else 0


def _changes(wanted: DesiredWorker, listed_worker: ListedWorker) -> Iterable[SeenWorker]:
    if (listed_worker.phase, listed_worker.detail, listed_worker.ends_at) != (
        wanted.phase,
        wanted.detail,
        wanted.ends_at,
    ):
        yield SeenWorker(
            worker_id=wanted.id,
            phase=listed_worker.phase,
            detail=listed_worker.detail,
            ends_at=listed_worker.ends_at,
        )


def _unlisted_reports(wanted: DesiredWorker) -> Iterable[SeenWorker]:
    if wanted.phase == "wanted" and wanted.released:
        yield SeenWorker(worker_id=wanted.id, phase="over", detail="it was never started")
    elif wanted.phase in ("queued", "running"):
        yield SeenWorker(worker_id=wanted.id, phase="missing", detail=wanted.detail, ends_at=wanted.ends_at)
