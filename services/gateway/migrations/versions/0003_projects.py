"""Adds the project of an experiment."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column(
        "experiments", sa.Column("project_id", sa.Integer, nullable=False, server_default=sa.text("1"))
    )
    op.create_index("ix_experiments_project_id", "experiments", ["project_id"])


def downgrade() -> None:
    op.drop_index("ix_experiments_project_id", "experiments")
    op.drop_column("experiments", "project_id")
