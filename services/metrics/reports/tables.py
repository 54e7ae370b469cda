"""The tables of reports."""

from __future__ import annotations

import sqlalchemy as sa

from services.metrics.tables import TABLES

ROWS_PER_BATCH = 1_000_000
"""A report's id is its batch's position in REPORTS times this, plus its index there.

So a rebuild gives the same ids.
"""

TRIALS = sa.Table(
    "trials",
    TABLES,
    sa.Column("trial_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("experiment_id", sa.BigInteger, nullable=False, index=True),
    sa.Column("smaller_is_better", sa.Boolean, nullable=False),
    sa.Column("total_batches", sa.BigInteger, nullable=False),
)
HOMES = sa.Table(
    "trial_homes",
    TABLES,
    sa.Column("trial_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("experiment_id", sa.BigInteger, nullable=False),
)
"""The experiment of each trial, as the log says. A report only claims one, and may claim another's."""

SUMMARIES = sa.Table(
    "summaries",
    TABLES,
    sa.Column("trial_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.String, primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
"""One row per trial and group: metric name -> statistics (`services.metrics.reports.summary`)."""

VALIDATIONS = sa.Table(
    "validations",
    TABLES,
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
"""The reports of the group `validation` again, for ranking.

`ranked`: whether it has the searcher metric. `metric` is the value of that if it is a finite number.
"""

PARTITIONS = sa.Table(
    "strands",
    TABLES,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("trial_id", sa.BigInteger, nullable=False),
    sa.Column("run", sa.BigInteger, nullable=False),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("merges", sa.Boolean, nullable=False),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("names", sa.LargeBinary, nullable=False),
    sa.Index("strands_by_trial", "trial_id", "digest"),
)
"""Reports of one run and group of a trial with the same metric names. Its id is that of its first report.

`merges`: its reports add keys to those of other partitions at the same steps. `digest` identifies `names`.
In the database a partition has its older name, strand: the release before must be able to read the table.
"""

CHUNKS = sa.Table(
    "chunks",
    TABLES,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("strand_id", sa.BigInteger, key="partition_id", nullable=False),
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
    sa.Index("chunks_by_strand", "partition_id", "level"),
)
"""Reports of one partition in columns (`services.metrics.series.chunk`). Its id is the smallest of theirs.

A small chunk has all its columns in `body`; a sealed one has `marks` instead, and a row per column in
COLUMNS.
"""

COLUMNS = sa.Table(
    "columns",
    TABLES,
    sa.Column("chunk_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("cells", sa.LargeBinary, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
"""One metric of a sealed chunk. `place` is the index of its name in the partition."""
