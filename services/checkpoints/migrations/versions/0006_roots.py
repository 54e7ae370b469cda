"""Adds roots for records, so that records can be in the database only."""

from alembic import op

from services.kit.database import add_roots

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    add_roots(op.get_bind())


def downgrade() -> None:
    """Earlier releases read the table unchanged."""
