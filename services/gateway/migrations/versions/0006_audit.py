"""Adds the audit table. A refold fills it with past events."""

import sqlalchemy as sa
from alembic import op

from services.kit.database import forget_snapshot

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("position", sa.BigInteger, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("username", sa.String, nullable=False),
        sa.Column("event", sa.String, nullable=False),
        sa.Column("about", sa.String, nullable=False),
        sa.Column("what", sa.String, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
    )
    for column in ("at", "username", "about"):
        op.create_index(f"ix_audit_{column}", "audit", [column])
    forget_snapshot(op.get_bind(), "checkpoints", "trials", "experiments")


def downgrade() -> None:
    op.drop_table("audit")
