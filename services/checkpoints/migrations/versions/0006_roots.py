"""Records belong to roots, which may lie in the database alone."""

from alembic import op

from services.kit.database import add_roots

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    add_roots(op.get_bind())


def downgrade() -> None:
    """Releases before this one read the table as it is."""
