"""A table of slot time per day, experiment or task, and pool: reports on years do not go through single runs.

It counts runs that have ended. The few that have not are added when it is read, from the table of runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa

from services.catalogue.domain import Allocation
from services.kit.database import add_to_sums, delete_matching

METADATA = sa.MetaData()
USAGE = sa.Table(
    "usage_days",
    METADATA,
    sa.Column("day", sa.Integer, primary_key=True),
    sa.Column("experiment_id", sa.BigInteger, primary_key=True),
    sa.Column("task_id", sa.String, primary_key=True),
    sa.Column("pool", sa.String, primary_key=True),
    sa.Column("slot_us", sa.BigInteger, nullable=False),
)
"""`slot_us` is in slot microseconds: whole numbers, so that what was added can be taken off again exactly."""
DAY_S = 24 * 60 * 60
EPOCH = date(1970, 1, 1)


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


def day_number(at: float) -> int:
    """The number of the day (UTC) of a time in seconds since the epoch."""
    return int(at // DAY_S)


def replace_runs(connection: sa.Connection, old: Iterable[Allocation], new: Iterable[Allocation]) -> None:
    """Count ended runs in place of those that were counted before under their ids."""
    changes: dict[UsageKey, int] = defaultdict(int)
    for sign, some in ((-1, old), (1, new)):
        for run in some:
            for key, slot_us in by_day(run, run.ended_at or 0.0):
                changes[key] += sign * slot_us
    rows = [key._asdict() | {"slot_us": slot_us} for key, slot_us in changes.items() if slot_us]
    add_to_sums(connection, USAGE, rows)
    lowered = [key._asdict() | {"slot_us": 0} for key, slot_us in changes.items() if slot_us < 0]
    delete_matching(connection, USAGE, lowered)


def by_day(run: Allocation, until: float) -> Iterator[tuple[UsageKey, int]]:
    """The slot time of a run up to a time, split at midnight (UTC)."""
    if not run.slots or not run.members or run.started_at is None:
        return
    at, task_id = run.started_at, run.task_id if run.experiment_id <= 0 else ""
    while at < until:
        day = day_number(at)
        end = min(until, (day + 1.0) * DAY_S)
        yield UsageKey(day, run.experiment_id, task_id, run.pool), round((end - at) * run.slots * 1e6)
        at = end


def ended_by_day(connection: sa.Connection, first: int, last: int | None) -> Mapping[UsageKey, int]:
    """The slot time of ended runs from one day to another; None: to the newest."""
    query = sa.select(USAGE).where(USAGE.c.day >= first)
    rows: Any = connection.execute(query if last is None else query.where(USAGE.c.day <= last))
    return {UsageKey(*key): slot_us for *key, slot_us in rows}
