"""Adds whether an experiment is archived."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column(
        "experiments", sa.Column("archived", sa.Boolean, nullable=False, server_default=sa.false())
    )
