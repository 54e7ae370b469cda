"""Stores log lines in packed chunks instead of rows, and converts existing lines."""

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from alembic import op

from det_contracts.reports import LogLine
from services.metrics.domain import LogLines
from services.metrics.logs.writer import LineWriter

revision = "0003"
down_revision = "0002"

LINES_PER_BATCH = 4096
AT_ONCE = 50_000


def upgrade() -> None:
    op.create_table(
        "log_chunks",
        sa.Column("first_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("last_id", sa.BigInteger, nullable=False),
        sa.Column("task_id", sa.String, nullable=False),
        sa.Column("tier", sa.Integer, nullable=False),
        sa.Column("weight", sa.BigInteger, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("lines", sa.Integer, nullable=False),
        sa.Column("first_at", sa.BigInteger, nullable=False),
        sa.Column("last_at", sa.BigInteger, nullable=False),
        sa.Column("stored", sa.BigInteger, nullable=False),
        sa.Column("kinds", sa.LargeBinary, nullable=False),
        sa.Column("columns", sa.LargeBinary, nullable=False),
        sa.Column("trigrams", sa.LargeBinary),
        sa.Column("texts", sa.LargeBinary, nullable=False),
        sa.Index("log_chunks_in_order", "task_id", "last_id"),
        sa.Index("log_chunks_open", "task_id", "tier"),
    )
    op.create_table(
        "log_tasks",
        sa.Column("task_id", sa.String, primary_key=True),
        sa.Column("lines", sa.BigInteger, nullable=False),
    )
    _convert_lines(op.get_bind())
    op.drop_table("lines")


def _convert_lines(connection: sa.Connection) -> None:
    """Convert the rows. LOGS is kept only for a while, so not all lines could be read from it again."""
    lines = sa.table("lines", *map(sa.column, ("id", "task_id", "allocation_id", "worker_id", "at", "level")))
    for name in ("rank", "source", "stdtype", "text"):
        lines.append_column(sa.column(name))
    last = -1
    while True:
        chosen = sa.select(lines).where(lines.c.id > last).order_by(lines.c.id).limit(AT_ONCE)
        rows = connection.execute(chosen).mappings().all()
        if not rows:
            return
        last = rows[-1]["id"]
        # A batch is read as a whole, or written in two parts.
        _write(connection, rows)


def _write(connection: sa.Connection, rows: Sequence[Any]) -> None:
    writer = LineWriter(connection)
    batches: dict[int, list[Any]] = {}
    for row in rows:
        batches.setdefault(row["id"] // LINES_PER_BATCH, []).append(row)
    for position, batch_rows in batches.items():
        first_row = batch_rows[0]
        log_lines = [LogLine(r["at"], r["stdtype"], r["level"], r["rank"], r["text"]) for r in batch_rows]
        batch = LogLines(
            task_id=first_row["task_id"],
            allocation_id=first_row["allocation_id"],
            worker_id=first_row["worker_id"],
            source=first_row["source"],
            offset=0,
            count=len(log_lines),
            lines=msgspec.Raw(msgspec.json.encode(log_lines)),
        )
        writer.write(batch, position, first=first_row["id"] % LINES_PER_BATCH)
    writer.finish()
