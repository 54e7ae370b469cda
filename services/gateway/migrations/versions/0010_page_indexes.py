"""Indexes for the usual pages: experiments of a project, those in a state, audit rows of a user or thing."""

from alembic import op

revision = "0010"
down_revision = "0009"

MADE = (
    ("experiments_by_project", "experiments", ["project_id", "archived", "id"]),
    ("experiments_by_archived", "experiments", ["archived", "id"]),
    ("ix_experiments_shown_state", "experiments", ["shown_state"]),
    ("audit_by_user", "audit", ["username", "position"]),
    ("audit_by_thing", "audit", ["about", "position"]),
)
REPLACED = (
    ("ix_experiments_project_id", "experiments", ["project_id"]),
    ("ix_audit_username", "audit", ["username"]),
    ("ix_audit_about", "audit", ["about"]),
)


def upgrade() -> None:
    for name, table, columns in MADE:
        op.create_index(name, table, columns)
    for name, table, _ in REPLACED:
        op.drop_index(name, table)


def downgrade() -> None:
    for name, table, columns in REPLACED:
        op.create_index(name, table, columns)
    for name, table, _ in MADE:
        op.drop_index(name, table)
