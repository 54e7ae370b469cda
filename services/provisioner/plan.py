"""What to have an engine do, from what the scheduler wants and what the engine lists: pure.

Nothing is remembered from one look to the next, so a provisioner that was killed goes on where it was. Each
worker has an id of its own for ever: what is listed under it was started for it, however long ago.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from det_contracts.events.scheduler import Phase
from det_contracts.provisioning import SeenWorker
from services.provisioner.engines.protocol import Seen


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that a pool has asked for, as the scheduler tells it."""

    id: str
    number: int
    phase: Phase
    detail: str = ""
    ends_at: float = 0.0
    released: str = ""
    """Why it is given back; empty while it is not."""
    here: bool = False
    busy: bool = False


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the scheduler wants of one pool."""

    pool: str
    newest: int = 0
    problem: str = ""
    """Why its engine could not be asked, as far as the scheduler has heard."""
    workers: tuple[Wanted, ...] = ()


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What follows for the engine and for the scheduler."""

    start: tuple[str, ...] = ()
    stop: tuple[Seen, ...] = ()
    forget: tuple[Seen, ...] = ()
    report: tuple[SeenWorker, ...] = ()


def plan(wish: Wish, seen: Sequence[Seen]) -> Plan:
    """See the module. What the engine lists must have been asked for before `wish` was."""
    wanted = {one.id: one for one in wish.workers}
    by_id: dict[str, list[Seen]] = {}
    for one in seen:
        by_id.setdefault(one.worker_id, []).append(one)
    stop, report = list[Seen](), list[SeenWorker]()
    for id, listed in by_id.items():
        alive = sorted((one for one in listed if one.phase != "over"), key=_first)
        if id not in wanted:
            # Later than all that this answer knows: it was asked for meanwhile, and by somebody else.
            stop += alive if 0 < _number(id, wish.pool) <= wish.newest else ()
            continue
        stop += alive[1:]
        if wanted[id].released and not wanted[id].busy:
            stop += alive[:1]
        report += _news(wanted[id], (alive or listed)[0])
    unlisted = [one for one in wish.workers if one.id not in by_id]
    report += [news for one in unlisted for news in _of_unlisted(one)]
    return Plan(
        start=tuple(one.id for one in unlisted if one.phase == "wanted" and not one.released),
        stop=tuple(stop),
        forget=tuple(one for one in seen if one.phase == "over" and one.worker_id not in wanted),
        report=tuple(report),
    )


def _first(one: Seen) -> tuple[bool, str]:
    """Of several that were started for one id the one that runs is kept, else that of the first handle."""
    return one.phase != "running", one.handle


def _number(id: str, pool: str) -> int:
    """Which worker of the pool it is; 0 for an id that this pool never gave out."""
    number = id.removeprefix(f"{pool}-")
    return int(number) if number != id and number.isdecimal() else 0


def _news(wanted: Wanted, seen: Seen) -> Iterable[SeenWorker]:
    if (seen.phase, seen.detail, seen.ends_at) != (wanted.phase, wanted.detail, wanted.ends_at):
        yield SeenWorker(worker_id=wanted.id, phase=seen.phase, detail=seen.detail, ends_at=seen.ends_at)


def _of_unlisted(wanted: Wanted) -> Iterable[SeenWorker]:
    if wanted.phase == "wanted" and wanted.released:
        yield SeenWorker(worker_id=wanted.id, phase="over", detail="it was never started")
    elif wanted.phase in ("queued", "running"):
        yield SeenWorker(worker_id=wanted.id, phase="missing", detail=wanted.detail, ends_at=wanted.ends_at)
