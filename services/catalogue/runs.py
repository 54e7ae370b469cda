"""A table of runs that held slots, by time. Usage spans all experiments, most of which are paged out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

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
_run: msgspec.json.Decoder[Allocation] = msgspec.json.Decoder(Allocation)


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
    within = sa.select(c.body).where(c.until > after, c.started_at < before)
    found: Iterable[bytes] = connection.scalars(within.order_by(c.started_at, c.id))
    return [_run.decode(body) for body in found]
