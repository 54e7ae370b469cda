"""Adds the experiment of each trial as the log says it, because a script's reports may claim another's."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "trial_homes",
        sa.Column("trial_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("experiment_id", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("trial_homes")
