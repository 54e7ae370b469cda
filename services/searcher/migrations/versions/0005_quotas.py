"""Names of workspaces, and what quotas count, are kept, too: the snapshot is folded anew."""

from alembic import op

from services.kit.database import forget_snapshot

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    forget_snapshot(op.get_bind())


def downgrade() -> None:
    forget_snapshot(op.get_bind())
