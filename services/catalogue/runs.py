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
STILL = 1e18
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
AT_ONCE = 1000
"""Number of rows in memory at a time."""
_run: msgspec.json.Decoder[Allocation] = msgspec.json.Decoder(Allocation)


class _Used(msgspec.Struct, frozen=True, gc=False):
    """The fields of a run that are needed for sums. One sum may read a million runs."""

    task_id: str
    experiment_id: int
    slots: int
    pool: str
    started_at: float
    ended_at: float | None
    members: tuple[msgspec.Raw, ...]


_used: msgspec.json.Decoder[_Used] = msgspec.json.Decoder(_Used)


class Use(NamedTuple):
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
    changed = [(id, one) for (kind, id), one in records.items() if kind == "allocations"]
    begun = [one for _, one in changed if one is not None and one.started_at is not None]
    upsert(connection, RUNS, [_row(one) for one in begun])
    for id in (id for id, one in changed if one is None):
        connection.execute(sa.delete(RUNS).where(RUNS.c.id == id))


def _row(one: Allocation) -> dict[str, Any]:
    until = STILL if one.ended_at is None else one.ended_at
    return {
        "id": one.id,
        "started_at": one.started_at,
        "until": until,
        "body": msgspec.json.encode(one),
    }


def held(connection: sa.Connection, after: float, before: float = STILL) -> list[Allocation]:
    """Runs that held slots between two times (seconds since the epoch, UTC), in order of their start."""
    c = RUNS.c
    within = _within(after, before)
    found: Iterable[bytes] = connection.scalars(within.order_by(c.started_at, c.id))
    return [_run.decode(body) for body in found]


def used(connection: sa.Connection, after: float, before: float, now: float) -> dict[Use, float]:
    """Slot seconds of all runs between two times, in seconds since the epoch.

    Only the sums are kept in memory, however many runs there are.
    """
    sums: dict[Use, float] = defaultdict(float)
    rows: Iterable[bytes] = connection.scalars(
        _within(after, before), execution_options={"yield_per": AT_ONCE}
    )
    for body in rows:
        one = _used.decode(body)
        if not one.slots or not one.members:
            continue
        at = max(one.started_at, after)
        until = min(one.ended_at or max(now, one.started_at), before)
        task_id = one.task_id if one.experiment_id <= 0 else ""
        while at < until:
            day = int(at // DAY_S)
            end = min(until, (day + 1.0) * DAY_S)
            sums[Use(day, one.experiment_id, task_id, one.pool)] += (end - at) * one.slots
            at = end
    return sums


def _within(after: float, before: float) -> sa.Select[Any]:
    return sa.select(RUNS.c.body).where(RUNS.c.until > after, RUNS.c.started_at < before)
