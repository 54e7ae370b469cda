"""Adds a table of runs by time. A refold fills it with past runs."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("started_at", sa.Float, nullable=False),
        sa.Column("until", sa.Float, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_index("ix_runs_until", "runs", ["until"])


def downgrade() -> None:
    op.drop_table("runs")
