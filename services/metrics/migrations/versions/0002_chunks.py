"""Stores reports in chunks of columns instead of one row each, and converts existing reports."""

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import sqlalchemy as sa
from alembic import op

from services.metrics.reports import chunks
from services.metrics.series.chunk import Chunk, microseconds, sort
from services.metrics.series.column import column

revision = "0002"
down_revision = "0001"


AT_ONCE = 50_000
COLUMNS = "id trial_id run kind steps at metrics batch_metrics ranked metric archived"
VALIDATIONS = "id trial_id run steps at metrics ranked metric archived"
STRANDS = "id trial_id run kind merges digest names"


def upgrade() -> None:
    op.create_table(
        "validations",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("trial_id", sa.BigInteger, nullable=False),
        sa.Column("run", sa.BigInteger, nullable=False),
        sa.Column("steps", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("metrics", sa.LargeBinary, nullable=False),
        sa.Column("ranked", sa.Boolean, nullable=False),
        sa.Column("metric", sa.Float),
        sa.Column("archived", sa.Boolean, nullable=False),
        sa.Index("validations_by_steps", "trial_id", "run", "steps"),
        sa.Index("validations_by_metric", "trial_id", "archived", "metric"),
    )
    op.create_table(
        "strands",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("trial_id", sa.BigInteger, nullable=False),
        sa.Column("run", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("merges", sa.Boolean, nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("names", sa.LargeBinary, nullable=False),
        sa.Index("strands_by_trial", "trial_id", "digest"),
    )
    op.create_table(
        "chunks",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("strand_id", sa.BigInteger, nullable=False),
        sa.Column("level", sa.SmallInteger, nullable=False),
        sa.Column("archived", sa.Boolean, nullable=False),
        sa.Column("reports", sa.Integer, nullable=False),
        sa.Column("names", sa.Integer, nullable=False),
        sa.Column("first_steps", sa.BigInteger, nullable=False),
        sa.Column("last_steps", sa.BigInteger, nullable=False),
        sa.Column("first_at", sa.BigInteger, nullable=False),
        sa.Column("last_at", sa.BigInteger, nullable=False),
        sa.Column("marks", sa.LargeBinary),
        sa.Column("frame", sa.LargeBinary, nullable=False),
        sa.Column("body", sa.LargeBinary),
        sa.Index("chunks_by_strand", "strand_id", "level"),
    )
    op.create_table(
        "columns",
        sa.Column("chunk_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("cells", sa.LargeBinary, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    _convert_reports(op.get_bind())
    op.drop_table("reports")


def downgrade() -> None:
    raise NotImplementedError("delete the database instead: it is filled again from the log")


def _table(name: str, columns: str) -> Any:
    return sa.table(name, *map(sa.column, columns.split()))


def _convert_reports(connection: sa.Connection) -> None:
    """Read strand by strand, in parts. A strand that continues in the next part keeps its name."""
    strands: dict[tuple[Any, ...], int] = {}
    for rows in _read_batches(connection):
        validations = [
            {name: row[name] for name in VALIDATIONS.split()} for row in rows if row["kind"] == "validation"
        ]
        if validations:
            connection.execute(sa.insert(_table("validations", VALIDATIONS)), validations)
        members_by_strand: dict[tuple[int, bool], list[tuple[Any, dict[str, Any]]]] = {}
        for row in rows:
            metrics = msgspec.json.decode(row["metrics"])
            strand = _strand(connection, strands, row, sorted(metrics))
            members_by_strand.setdefault((strand, bool(row["archived"])), []).append((row, metrics))
        for (strand, archived), members in members_by_strand.items():
            parts = chunks.parts_of(_chunk(members))
            chunks.insert(connection, [(strand, part, archived) for part in parts])


def _read_batches(connection: sa.Connection) -> Iterator[list[Any]]:
    reports, last = _table("reports", COLUMNS), -1
    while True:
        chosen = sa.select(reports).where(reports.c.id > last).order_by(reports.c.id).limit(AT_ONCE)
        rows = list(connection.execute(chosen).mappings().all())
        if not rows:
            return
        last = rows[-1]["id"]
        yield rows


def _strand(
    connection: sa.Connection, strands: dict[tuple[Any, ...], int], row: Any, metrics: list[str]
) -> int:
    names = msgspec.json.encode(metrics)
    key = (row["trial_id"], row["run"], row["kind"], False, hashlib.blake2b(names, digest_size=16).digest())
    if key not in strands:
        strands[key] = row["id"]
        values = dict(zip(STRANDS.split(), (row["id"], *key, names), strict=True))
        connection.execute(sa.insert(_table("strands", STRANDS)).values(**values))
    return strands[key]


def _chunk(members: list[tuple[Any, dict[str, Any]]]) -> Chunk:
    batched = [row["batch_metrics"] and msgspec.json.decode(row["batch_metrics"]) for row, _ in members]
    return sort(
        Chunk(
            np.array([row["id"] for row, _ in members], np.int64),
            np.array([row["steps"] for row, _ in members], np.int64),
            microseconds([row["at"] for row, _ in members]),
            tuple(column([metrics[name] for _, metrics in members]) for name in sorted(members[0][1])),
            batched if any(batch_metrics is not None for batch_metrics in batched) else None,
        )
    )
