"""Adds a table of slot time by day. A refold fills it."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "usage_days",
        sa.Column("day", sa.Integer, primary_key=True),
        sa.Column("experiment_id", sa.BigInteger, primary_key=True),
        sa.Column("task_id", sa.String, primary_key=True),
        sa.Column("pool", sa.String, primary_key=True),
        sa.Column("slot_us", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("usage_days")
