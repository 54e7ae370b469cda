"""Assigns records to roots, which may be paged out to the database."""

from alembic import op

from services.kit.database import add_roots

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    add_roots(op.get_bind())


def downgrade() -> None:
    """Nothing to do: earlier releases can read the table as it is."""
