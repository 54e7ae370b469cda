"""An index for exports of all runs, which are read page by page in order of their start."""

from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.create_index("runs_by_start", "runs", ["started_at", "id", "until"])


def downgrade() -> None:
    op.drop_index("runs_by_start", "runs")
