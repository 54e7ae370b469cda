"""Which workspace a project is in, and who holds which roles, is kept, too: the snapshot is folded anew."""

from alembic import op

from services.kit.database import forget_snapshot

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    forget_snapshot(op.get_bind())


def downgrade() -> None:
    forget_snapshot(op.get_bind())
