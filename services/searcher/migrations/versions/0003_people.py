"""Who there is and whose things are is kept, too: the snapshot is folded anew from the log."""

from alembic import op

from services.kit.database import forget_snapshot

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    forget_snapshot(op.get_bind())


def downgrade() -> None:
    forget_snapshot(op.get_bind())
