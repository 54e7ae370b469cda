"""The tables of log lines."""

from __future__ import annotations

import sqlalchemy as sa

from det_contracts.reports import MAX_LINES_PER_BATCH
from services.metrics.tables import TABLES

LINES_PER_BATCH = MAX_LINES_PER_BATCH
"""A line's id is its batch's position in LOGS times this, plus its index there.

So a rebuild gives the same ids.
"""

CHUNKS = sa.Table(
    "log_chunks",
    TABLES,
    sa.Column("first_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("last_id", sa.BigInteger, nullable=False),
    sa.Column("task_id", sa.String, nullable=False),
    sa.Column("tier", sa.Integer, nullable=False),
    sa.Column("weight", sa.BigInteger, nullable=False),
    sa.Column("number", sa.BigInteger, nullable=False),
    sa.Column("lines", sa.Integer, nullable=False),
    sa.Column("first_at", sa.BigInteger, nullable=False),
    sa.Column("last_at", sa.BigInteger, nullable=False),
    sa.Column("stored", sa.BigInteger, nullable=False),
    sa.Column("kinds", sa.LargeBinary, nullable=False),
    sa.Column("columns", sa.LargeBinary, nullable=False),
    sa.Column("trigrams", sa.LargeBinary),
    sa.Column("texts", sa.LargeBinary, nullable=False),
    sa.Index("log_chunks_in_order", "task_id", "last_id"),
    sa.Index("log_chunks_open", "task_id", "tier"),
    sa.Index("log_chunks_by_age", "last_id"),
)
"""Consecutive lines of one task, packed (`chunk.py`). Chunks of a task do not overlap.

`number`: how many lines of the task come before; `first_at`, `last_at`: the earliest and latest time, in
microseconds; `stored`: bytes of the packed parts; `tier`, `weight`: see `tiers.py`. The columns that are read
to skip a chunk come before the large ones.
"""

TASKS = sa.Table(
    "log_tasks",
    TABLES,
    sa.Column("task_id", sa.String, primary_key=True),
    sa.Column("lines", sa.BigInteger, nullable=False),
)
"""How many lines each task has ever had, including trimmed ones."""
