"""Stores decisions that are not in CONTROL yet as records of their own, and adds indexes for deletions."""

import json

import sqlalchemy as sa
from alembic import op

from services.kit.database import SNAPSHOTS

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_index("log_chunks_by_age", "log_chunks", ["last_id"])
    if op.get_bind().dialect.name == "postgresql":
        op.execute('CREATE INDEX log_tasks_by_owner ON log_tasks (task_id COLLATE "C")')
    _convert_snapshot(op.get_bind())


def downgrade() -> None:
    raise NotImplementedError("delete the database instead: it is filled again from the log")


def _convert_snapshot(connection: sa.Connection) -> None:
    """Convert the snapshot. REPORTS is kept only for a while, so not all reports could be judged again."""
    S = SNAPSHOTS.c
    trials = sa.select(S.owner, S.id, S.body).where(S.owner == "metrics", S.kind == "trials")
    rows = []
    for owner, trial_id, body in connection.execute(trials):
        for finding in json.loads(body).get("pending", ()):
            id = f"{trial_id}#{finding['number']}"
            rows.append({"owner": owner, "kind": "findings", "id": id, "body": json.dumps(finding).encode()})
    if rows:
        connection.execute(sa.insert(SNAPSHOTS), rows)
