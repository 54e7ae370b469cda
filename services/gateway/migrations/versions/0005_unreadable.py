"""Adds a table of unreadable messages. A refold finds the earlier ones."""

import sqlalchemy as sa
from alembic import op

from services.kit.database import forget_snapshot

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "unreadable",
        sa.Column("position", sa.BigInteger, primary_key=True),
        sa.Column("subject", sa.String, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
    )
    forget_snapshot(op.get_bind(), "checkpoints", "trials", "experiments")


def downgrade() -> None:
    op.drop_table("unreadable")
