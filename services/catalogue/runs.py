"""A table of runs that held slots, by time. Usage spans all experiments, most of which are paged out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from det_contracts.ids import allocation_id
from services.catalogue import usage_days
from services.catalogue.domain import Allocation, TaskOwner
from services.catalogue.usage_days import UsageKey
from services.kit.database import delete_matching, id_batches, upsert
from services.kit.rules import Key

METADATA = sa.MetaData()
NOT_ENDED = 1e18
"""The end of runs that have not ended. A value instead of null lets one index find all runs at a given time.
"""
RUNS = sa.Table(
    "runs",
    METADATA,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("started_at", sa.Float, nullable=False),
    sa.Column("until", sa.Float, nullable=False, index=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
    # With the end, so that runs which ended before the time in question are passed over without being read.
    sa.Index("runs_by_start", "started_at", "id", "until"),
)
_run_decoder: msgspec.json.Decoder[Allocation] = msgspec.json.Decoder(Allocation)


def write(connection: sa.Connection, records: Mapping[Key, Any]) -> None:
    """Store the changed runs that have started, and delete removed ones."""
    changed = {id: run for (kind, id), run in records.items() if kind == "allocations"}
    started = [run for run in changed.values() if run is not None and run.started_at is not None]
    counted = list(_ended(connection, changed))
    upsert(connection, RUNS, [_row(run) for run in started])
    delete_matching(connection, RUNS, [{"id": id} for id, run in changed.items() if run is None])
    usage_days.replace_runs(connection, counted, (run for run in started if run.ended_at is not None))


def _ended(connection: sa.Connection, ids: Iterable[str]) -> Iterator[Allocation]:
    """Those of these runs that had ended already when they were last stored."""
    for some in id_batches(ids):
        query = sa.select(RUNS.c.body).where(RUNS.c.id.in_(some), RUNS.c.until < NOT_ENDED)
        yield from map(_run_decoder.decode, connection.scalars(query))


def _row(run: Allocation) -> dict[str, Any]:
    until = NOT_ENDED if run.ended_at is None else run.ended_at
    return {
        "id": run.id,
        "started_at": run.started_at,
        "until": until,
        "body": msgspec.json.encode(run),
    }


def start_order(run: Allocation) -> tuple[float, str]:
    """What runs are ordered by: when they began."""
    return run.started_at or 0.0, run.id


def runs_page(
    connection: sa.Connection, after: float, before: float, last: tuple[float, str] | None, limit: int
) -> list[Allocation]:
    """At most `limit` runs that held slots between two times (seconds since the epoch), by their start.

    `last` is the start and the id of the last run of the page before.
    """
    c = RUNS.c
    begins = sa.tuple_(c.started_at, c.id) > sa.tuple_(*(last or (-NOT_ENDED, "")))
    query = sa.select(c.body).where(c.until > after, c.started_at < before, begins)
    bodies: Iterable[bytes] = connection.scalars(query.order_by(c.started_at, c.id).limit(limit))
    return [_run_decoder.decode(body) for body in bodies]


def runs_since(connection: sa.Connection, since: float) -> Iterator[Allocation]:
    """Runs that held slots after a time (seconds since the epoch), in no order."""
    # Without an order the index by ends is used, so that what ended before costs nothing.
    query = sa.select(RUNS.c.body).where(RUNS.c.until > since).execution_options(yield_per=500)
    with connection.scalars(query) as bodies:
        yield from map(_run_decoder.decode, bodies)


class Use(NamedTuple):
    """What used slots, and whose the tasks among it were that are forgotten."""

    slot_seconds: dict[UsageKey, float]
    task_owners: dict[str, TaskOwner]
    """By task id."""


def use(connection: sa.Connection, first: int, last: int | None, now: float) -> Use:
    """The use of slots from one day to another; see `slot_seconds`."""
    used = slot_seconds(connection, first, last, now)
    return Use(used, _task_owners(connection, used))


def slot_seconds(
    connection: sa.Connection, first: int, last: int | None, now: float
) -> dict[UsageKey, float]:
    """Slot seconds of all runs from one day to another; None: to the newest (`usage_days.day_number`).

    Reads one row for what used slots on a day, however many runs it had, and the runs that have not ended.
    """
    sums = defaultdict(int, usage_days.ended_by_day(connection, first, last))
    unended = sa.select(RUNS.c.body).where(RUNS.c.until == NOT_ENDED)
    if last is not None:
        unended = unended.where(RUNS.c.started_at < (last + 1) * usage_days.DAY_S)
    for body in connection.scalars(unended):
        for key, slot_us in usage_days.by_day(_run_decoder.decode(body), now):
            if first <= key.day and (last is None or key.day <= last):
                sums[key] += slot_us
    return {key: slot_us / 1e6 for key, slot_us in sums.items()}


def _task_owners(connection: sa.Connection, used: Iterable[UsageKey]) -> dict[str, TaskOwner]:
    """Whose those tasks were that are forgotten, by task id."""
    run_ids = {allocation_id(key.task_id, 1) for key in used if key.task_id}
    owners = {}
    for some in id_batches(run_ids):
        for body in connection.scalars(sa.select(RUNS.c.body).where(RUNS.c.id.in_(some))):
            run = _run_decoder.decode(body)
            if run.task_owner is not None:
                owners[run.task_id] = run.task_owner
    return owners
