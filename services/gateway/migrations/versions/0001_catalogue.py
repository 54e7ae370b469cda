"""The kit's tables, and the tables behind lists."""

import sqlalchemy as sa
from alembic import op

from services.kit.database import METADATA, POSITIONS, SNAPSHOTS

revision = "0001"
down_revision = None


def upgrade() -> None:
    METADATA.create_all(op.get_bind(), tables=[POSITIONS, SNAPSHOTS])
    op.create_table(
        "experiments",
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
    )
    op.create_table(
        "trials",
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
    op.create_table(
        "checkpoints",
        sa.Column("uuid", sa.String, primary_key=True),
        sa.Column("trial_id", sa.Integer, nullable=False, index=True),
        sa.Column("experiment_id", sa.Integer, nullable=False, index=True),
        sa.Column("steps", sa.BigInteger, nullable=False),
        sa.Column("stored_at", sa.Float, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("metric", sa.Float),
    )


def downgrade() -> None:
    for table in ("checkpoints", "trials", "experiments"):
        op.drop_table(table)
    METADATA.drop_all(op.get_bind(), tables=[POSITIONS, SNAPSHOTS])
