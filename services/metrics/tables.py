"""The tables of the metrics service."""

from __future__ import annotations

import sqlalchemy as sa

TABLES = sa.MetaData()
ROWS_PER_BATCH = 1_000_000
"""A report's id is its batch's position in REPORTS times this, plus its place there: a rebuild repeats it."""

REPORTS = sa.Table(
    "reports",
    TABLES,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("trial_id", sa.BigInteger, nullable=False),
    sa.Column("run", sa.BigInteger, nullable=False),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("steps", sa.BigInteger, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("metrics", sa.LargeBinary, nullable=False),
    sa.Column("batch_metrics", sa.LargeBinary),
    sa.Column("ranked", sa.Boolean, nullable=False),
    sa.Column("metric", sa.Float),
    sa.Column("archived", sa.Boolean, nullable=False),
    sa.Index("reports_by_steps", "trial_id", "run", "steps", "id"),
    sa.Index("reports_by_metric", "trial_id", "kind", "archived", "metric"),
)
"""`ranked`: a validation with the searcher metric; `metric` is its value where that is a finite number."""

TRIALS = sa.Table(
    "trials",
    TABLES,
    sa.Column("trial_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("experiment_id", sa.BigInteger, nullable=False, index=True),
    sa.Column("smaller_is_better", sa.Boolean, nullable=False),
    sa.Column("total_batches", sa.BigInteger, nullable=False),
)
SUMMARIES = sa.Table(
    "summaries",
    TABLES,
    sa.Column("trial_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.String, primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
"""One row per trial and group: metric name -> statistics (`services.metrics.summary`)."""
