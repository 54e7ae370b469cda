"""The kit's tables: snapshot and positions."""

from alembic import op

from services.kit.database import METADATA, POSITIONS, SNAPSHOTS

revision = "0001"
down_revision = None


def upgrade() -> None:
    METADATA.create_all(op.get_bind(), tables=[POSITIONS, SNAPSHOTS])


def downgrade() -> None:
    METADATA.drop_all(op.get_bind(), tables=[POSITIONS, SNAPSHOTS])
