"""Snapshot, positions, reports, summaries and log lines."""

import sqlalchemy as sa
from alembic import op

from services.kit.database import METADATA, POSITIONS, SNAPSHOTS

revision = "0001"
down_revision = None


def upgrade() -> None:
    METADATA.create_all(op.get_bind(), tables=[POSITIONS, SNAPSHOTS])
    op.create_table(
        "reports",
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
    op.create_table(
        "trials",
        sa.Column("trial_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("experiment_id", sa.BigInteger, nullable=False, index=True),
        sa.Column("smaller_is_better", sa.Boolean, nullable=False),
        sa.Column("total_batches", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "summaries",
        sa.Column("trial_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String, primary_key=True),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "lines",
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


def downgrade() -> None:
    for table in ("lines", "summaries", "trials", "reports"):
        op.drop_table(table)
    METADATA.drop_all(op.get_bind(), tables=[POSITIONS, SNAPSHOTS])
