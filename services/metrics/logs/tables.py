"""The tables of log lines."""

from __future__ import annotations

import sqlalchemy as sa

from services.metrics.tables import TABLES

LINES_PER_BATCH = 4096
"""A line's id is its batch's position in LOGS times this, plus its place there: a rebuild repeats it."""

LINES = sa.Table(
    "lines",
    TABLES,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("task_id", sa.String, nullable=False),
    sa.Column("allocation_id", sa.String, nullable=False),
    sa.Column("worker_id", sa.String, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("level", sa.String),
    sa.Column("rank", sa.Integer),
    sa.Column("source", sa.String, nullable=False),
    sa.Column("stdtype", sa.String, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Index("lines_by_task", "task_id", "id"),
)
