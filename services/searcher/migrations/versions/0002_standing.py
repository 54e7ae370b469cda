"""Adds indexes of records to the state; the snapshot is rebuilt from the log."""

from alembic import op

from services.kit.database import forget_snapshot

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    forget_snapshot(op.get_bind())


def downgrade() -> None:
    forget_snapshot(op.get_bind())
