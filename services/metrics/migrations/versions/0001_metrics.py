"""Snapshot, positions, reports, summaries and log lines."""

from alembic import op

from services.kit.database import METADATA, POSITIONS, SNAPSHOTS
from services.metrics.tables import TABLES

revision = "0001"
down_revision = None


def upgrade() -> None:
    METADATA.create_all(op.get_bind(), tables=[POSITIONS, SNAPSHOTS])
    TABLES.create_all(op.get_bind())


def downgrade() -> None:
    TABLES.drop_all(op.get_bind())
    METADATA.drop_all(op.get_bind(), tables=[POSITIONS, SNAPSHOTS])
