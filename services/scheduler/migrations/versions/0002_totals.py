"""The highest number of a task is kept: the snapshot is folded anew from the log."""

from alembic import op

from services.kit.database import forget_snapshot

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    forget_snapshot(op.get_bind())


def downgrade() -> None:
    forget_snapshot(op.get_bind())
