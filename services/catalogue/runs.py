"""A table of runs that held slots, by time. Usage spans all experiments, most of which are paged out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from services.catalogue.domain import Allocation
from services.kit.database import upsert
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
)
DAY_S = 24 * 60 * 60
EPOCH = date(1970, 1, 1)
FETCH_SIZE = 1000
"""Number of rows in memory at a time."""
_run_decoder: msgspec.json.Decoder[Allocation] = msgspec.json.Decoder(Allocation)


class _UsedFields(msgspec.Struct, frozen=True, gc=False):
    """The fields of a run that are needed for sums. One sum may read a million runs."""

    task_id: str
    experiment_id: int
    slots: int
    pool: str
    started_at: float
    ended_at: float | None
    members: tuple[msgspec.Raw, ...]


_used_decoder: msgspec.json.Decoder[_UsedFields] = msgspec.json.Decoder(_UsedFields)


class UsageKey(NamedTuple):
    """What used slots of one pool on one day: an experiment, or a task that belongs to none."""

    day: int
    """Number of days since 1970-01-01, UTC."""
    experiment_id: int
    task_id: str
    """Empty for a task of an experiment."""
    pool: str

    @property
    def date(self) -> date:
        """The day as a date."""
        return EPOCH + timedelta(days=self.day)


def write(connection: sa.Connection, records: Mapping[Key, Any]) -> None:
    """Store the changed runs that have started, and delete removed ones."""
    changed = [(id, run) for (kind, id), run in records.items() if kind == "allocations"]
    started = [run for _, run in changed if run is not None and run.started_at is not None]
    upsert(connection, RUNS, [_row(run) for run in started])
    for id in (id for id, run in changed if run is None):
        connection.execute(sa.delete(RUNS).where(RUNS.c.id == id))


def _row(run: Allocation) -> dict[str, Any]:
    until = NOT_ENDED if run.ended_at is None else run.ended_at
    return {
        "id": run.id,
        "started_at": run.started_at,
        "until": until,
        "body": msgspec.json.encode(run),
    }


def runs_between(connection: sa.Connection, after: float, before: float = NOT_ENDED) -> list[Allocation]:
    """Runs that held slots between two times (seconds since the epoch, UTC), in order of their start."""
    c = RUNS.c
    query = _overlapping(after, before)
    found: Iterable[bytes] = connection.scalars(query.order_by(c.started_at, c.id))
    return [_run_decoder.decode(body) for body in found]


def slot_seconds(connection: sa.Connection, after: float, before: float, now: float) -> dict[UsageKey, float]:
    """Slot seconds of all runs between two times, in seconds since the epoch.

    Only the sums are kept in memory, however many runs there are.
    """
    sums: dict[UsageKey, float] = defaultdict(float)
    rows: Iterable[bytes] = connection.scalars(
        _overlapping(after, before), execution_options={"yield_per": FETCH_SIZE}
    )
    for body in rows:
        run = _used_decoder.decode(body)
        if not run.slots or not run.members:
            continue
        at = max(run.started_at, after)
        # Another host's clock may be ahead of this one, and a run must not have a negative length.
        until = min(run.ended_at or max(now, run.started_at), before)
        task_id = run.task_id if run.experiment_id <= 0 else ""
        # A run of days is split at midnight (UTC), because sums are per day.
        while at < until:
            day = int(at // DAY_S)
            end = min(until, (day + 1.0) * DAY_S)
            sums[UsageKey(day, run.experiment_id, task_id, run.pool)] += (end - at) * run.slots
            at = end
    return sums


def _overlapping(after: float, before: float) -> sa.Select[Any]:
    return sa.select(RUNS.c.body).where(RUNS.c.until > after, RUNS.c.started_at < before)
