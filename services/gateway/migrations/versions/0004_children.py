"""Lists within records become indexes, so the snapshot is discarded and refolded from the log."""

from alembic import op

from services.kit.database import forget_snapshot

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    forget_snapshot(op.get_bind(), "checkpoints", "trials", "experiments")


def downgrade() -> None:
    forget_snapshot(op.get_bind(), "checkpoints", "trials", "experiments")
