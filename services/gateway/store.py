"""The catalogue's tables: what lists are filtered and sorted by. The records themselves are in the fold."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from det_contracts.envelope import Recorded, Unknown
from services.gateway import audit
from services.gateway.domain import Checkpoint, Experiment, Trial
from services.gateway.shown import experiment_state, trial_state
from services.kit.database import upsert
from services.kit.rules import Key

METADATA = sa.MetaData()

EXPERIMENTS = sa.Table(
    "experiments",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String, nullable=False),
    sa.Column("description", sa.String, nullable=False),
    sa.Column("labels", sa.String, nullable=False),
    sa.Column("username", sa.String, nullable=False, index=True),
    sa.Column("state", sa.String, nullable=False, index=True),
    sa.Column("shown_state", sa.String, nullable=False),
    sa.Column("pool", sa.String, nullable=False),
    sa.Column("started_at", sa.Float, nullable=False),
    sa.Column("ended_at", sa.Float),
    sa.Column("parent_id", sa.Integer),
    sa.Column("trials", sa.Integer, nullable=False),
    sa.Column("metric", sa.Float),
    sa.Column("checkpoints", sa.Integer, nullable=False),
    sa.Column("checkpoint_bytes", sa.BigInteger, nullable=False),
    sa.Column("archived", sa.Boolean, nullable=False),
    sa.Column("project_id", sa.Integer, nullable=False, index=True),
)
TRIALS = sa.Table(
    "trials",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("experiment_id", sa.Integer, nullable=False, index=True),
    sa.Column("state", sa.String, nullable=False),
    sa.Column("shown_state", sa.String, nullable=False),
    sa.Column("started_at", sa.Float, nullable=False),
    sa.Column("ended_at", sa.Float),
    sa.Column("restarts", sa.Integer, nullable=False),
    sa.Column("steps", sa.BigInteger, nullable=False),
    sa.Column("best_metric", sa.Float),
    sa.Column("latest_metric", sa.Float),
    sa.Column("checkpoint_bytes", sa.BigInteger, nullable=False),
)
LARGEST = 2**63 - 1
"""What a column takes: sizes are what scripts say they are."""
CHECKPOINTS = sa.Table(
    "checkpoints",
    METADATA,
    sa.Column("uuid", sa.String, primary_key=True),
    sa.Column("trial_id", sa.Integer, nullable=False, index=True),
    sa.Column("experiment_id", sa.Integer, nullable=False, index=True),
    sa.Column("steps", sa.BigInteger, nullable=False),
    sa.Column("stored_at", sa.Float, nullable=False),
    sa.Column("state", sa.String, nullable=False),
    sa.Column("metric", sa.Float),
)
UNREADABLE = sa.Table(
    "unreadable",
    METADATA,
    sa.Column("position", sa.BigInteger, primary_key=True),
    sa.Column("subject", sa.String, nullable=False),
    sa.Column("reason", sa.String, nullable=False),
)
"""Messages of CONTROL that nobody can read."""


def project(connection: sa.Connection, records: Mapping[Key, Any], events: Sequence[Recorded]) -> None:
    """Write the rows of all records that changed."""
    for kind, (table, row) in _ROWS.items():
        changed = [record for (of, _), record in records.items() if of == kind and record is not None]
        upsert(connection, table, [row(record) for record in changed])
        key = next(iter(table.primary_key))
        for gone in (id for (of, id), record in records.items() if of == kind and record is None):
            connection.execute(sa.delete(table).where(key == gone))
    upsert(connection, UNREADABLE, [_passed_over(one) for one in events if _is_unreadable(one)])
    upsert(connection, audit.AUDIT, audit.rows(events))


def unreadable(connection: sa.Connection, limit: int) -> list[dict[str, Any]]:
    """The newest messages of CONTROL that nobody can read: position, subject, reason."""
    newest = sa.select(UNREADABLE).order_by(UNREADABLE.c.position.desc()).limit(limit)
    return [dict(row) for row in connection.execute(newest).mappings()]


def _is_unreadable(recorded: Recorded) -> bool:
    return type(recorded.event) is Unknown and recorded.event.version == 0


def _passed_over(recorded: Recorded) -> dict[str, Any]:
    event = recorded.event
    return {"position": recorded.position, "subject": event.subject, "reason": event.name}


def label_text(labels: Sequence[str]) -> str:
    """Labels as they lie in their column: a JSON list, so that each stands between quotes."""
    return json.dumps(list(labels), ensure_ascii=False)


def _experiment(record: Experiment) -> dict[str, Any]:
    return {
        "id": record.id,
        "name": record.name,
        "description": record.description,
        "labels": label_text(record.labels),
        "username": record.user,
        "state": record.state,
        "shown_state": experiment_state(record),
        "pool": record.pool,
        "started_at": record.created_at,
        "ended_at": record.ended_at,
        "parent_id": record.parent_id,
        "trials": record.trials,
        "metric": record.best_metric,
        "checkpoints": record.checkpoints,
        "checkpoint_bytes": min(record.checkpoint_bytes, LARGEST),
        "archived": record.archived,
        "project_id": record.project_id,
    }


def _trial(record: Trial) -> dict[str, Any]:
    return {
        "id": record.id,
        "experiment_id": record.experiment_id,
        "state": record.state,
        "shown_state": trial_state(record),
        "started_at": record.created_at,
        "ended_at": record.ended_at,
        "restarts": record.restarts,
        "steps": record.steps,
        "best_metric": record.best.metric if record.best else None,
        "latest_metric": record.latest.metric if record.latest else None,
        "checkpoint_bytes": min(record.checkpoint_bytes, LARGEST),
    }


def _checkpoint(record: Checkpoint) -> dict[str, Any]:
    return {
        "uuid": record.uuid,
        "trial_id": record.trial_id,
        "experiment_id": record.experiment_id,
        "steps": record.steps,
        "stored_at": record.at,
        "state": record.state,
        "metric": record.metric,
    }


_ROWS: dict[str, tuple[sa.Table, Callable[[Any], dict[str, Any]]]] = {
    "experiments": (EXPERIMENTS, _experiment),
    "trials": (TRIALS, _trial),
    "checkpoints": (CHECKPOINTS, _checkpoint),
}
