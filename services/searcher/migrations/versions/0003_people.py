"""Adds users and ownership to the state; the snapshot is rebuilt from the log."""

from alembic import op

from services.kit.database import forget_snapshot

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    forget_snapshot(op.get_bind())


def downgrade() -> None:
    forget_snapshot(op.get_bind())
