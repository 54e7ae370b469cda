"""The tables by which lists are filtered and sorted. The records themselves are in the folded state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from det_contracts.envelope import Recorded, Unknown
from services.catalogue import audit, runs, usage_days
from services.catalogue.columns import checkpoints, experiments, trials
from services.catalogue.columns.column import Columns, row, table_columns
from services.kit.database import delete_matching, upsert
from services.kit.rules import Key

METADATA = sa.MetaData()

EXPERIMENTS = sa.Table(
    "experiments",
    METADATA,
    *table_columns(experiments.COLUMNS),
    # The usual pages are read in order, and counted, from an index alone.
    sa.Index("experiments_by_project", "project_id", "archived", "id"),
    sa.Index("experiments_by_archived", "archived", "id"),
)
TRIALS = sa.Table("trials", METADATA, *table_columns(trials.COLUMNS))
CHECKPOINTS = sa.Table("checkpoints", METADATA, *table_columns(checkpoints.COLUMNS))
UNREADABLE = sa.Table(
    "unreadable",
    METADATA,
    sa.Column("position", sa.BigInteger, primary_key=True),
    sa.Column("subject", sa.String, nullable=False),
    sa.Column("reason", sa.String, nullable=False),
)
"""Messages of CONTROL that cannot be decoded."""


def write_rows(connection: sa.Connection, records: Mapping[Key, Any], events: Sequence[Recorded]) -> None:
    """Write the rows of all changed records."""
    for kind, (table, columns) in _LISTS.items():
        changed = [record for (of, _), record in records.items() if of == kind and record is not None]
        upsert(connection, table, [row(columns, record) for record in changed])
        key = next(iter(table.primary_key)).name
        deleted = [{key: id} for (of, id), record in records.items() if of == kind and record is None]
        delete_matching(connection, table, deleted)
    upsert(
        connection, UNREADABLE, [_unreadable_row(recorded) for recorded in events if _is_unreadable(recorded)]
    )
    upsert(connection, audit.AUDIT, audit.rows(events))
    runs.write(connection, records)


def delete_rows(connection: sa.Connection) -> None:
    """Delete all rows, so that they can be rewritten from the log."""
    for table in (EXPERIMENTS, TRIALS, CHECKPOINTS, UNREADABLE, audit.AUDIT, runs.RUNS, usage_days.USAGE):
        connection.execute(sa.delete(table))


def unreadable_messages(connection: sa.Connection, limit: int) -> list[dict[str, Any]]:
    """The newest undecodable messages of CONTROL: position, subject and reason."""
    newest = sa.select(UNREADABLE).order_by(UNREADABLE.c.position.desc()).limit(limit)
    return [dict(row) for row in connection.execute(newest).mappings()]


def _is_unreadable(recorded: Recorded) -> bool:
    return type(recorded.event) is Unknown and recorded.event.version == 0


def _unreadable_row(recorded: Recorded) -> dict[str, Any]:
    event = recorded.event
    return {"position": recorded.position, "subject": event.subject, "reason": event.name}


_LISTS: dict[str, tuple[sa.Table, Columns]] = {
    "experiments": (EXPERIMENTS, experiments.COLUMNS),
    "trials": (TRIALS, trials.COLUMNS),
    "checkpoints": (CHECKPOINTS, checkpoints.COLUMNS),
}
