"""Writes accepted reports into the tables, with the totals and statistics derived from them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import sqlalchemy as sa
import structlog

from det_contracts.reports import ReportBatch
from services.kit.database import id_batches
from services.metrics.domain import VALIDATION, Archive, JudgedBatch, Piece
from services.metrics.reports import chunks
from services.metrics.reports.ranking import Ranking
from services.metrics.reports.statistics import Totals
from services.metrics.reports.tables import (
    CHUNKS,
    COLUMNS,
    HOMES,
    PARTITIONS,
    ROWS_PER_BATCH,
    SUMMARIES,
    TRIALS,
    VALIDATIONS,
)
from services.metrics.series.chunk import Chunk, microseconds, sort
from services.metrics.series.column import column

P = PARTITIONS.c
MAX_PARTITIONS = 20_000
"""Partitions of a trial. Each distinct set of names is one, and a query goes through all of a trial's."""
MAX_NAMES_BYTES = 32 * 1024 * 1024
"""Size of the names of all partitions of a trial, as JSON."""
_TOO_MANY_PARTITIONS = (
    f"it reports under more than {MAX_PARTITIONS} different sets of metric names, or {MAX_NAMES_BYTES} "
    "bytes of them: statistics of further ones are kept, their points are not"
)
log = structlog.get_logger()
PartitionKey = tuple[int, int, str, bool, bytes]
"""Trial, run, group, whether it merges, digest of the names."""
PendingPieces = list[tuple[list[int], Piece]]
"""Pieces of one partition, each with the ids of its reports."""


class ReportWriter:
    """Collects the reports of one commit. Operations that need stored data first write what is collected."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._partition_ids: dict[PartitionKey, int] = {}
        self._new_partitions: list[dict[str, Any]] = []
        self._pending: dict[int, PendingPieces] = {}
        self._partitions_left: dict[int, tuple[int, int]] = {}
        """For trials with new partitions: how many more they may have, and how many bytes of names."""
        self._full: set[int] = set()
        self._totals = Totals(connection)
        self._ranking = Ranking(connection)

    def write(self, batch: ReportBatch, judged: JudgedBatch, position: int) -> None:
        """Add the accepted reports of one batch. `position` is its position in REPORTS."""
        if judged.archive is not None:
            self._archive(batch.trial_id, judged.archive)
        pieces = [self._totals.count(batch, piece) for piece in judged.pieces]
        if judged.keeps_points:
            self._find_partitions(batch, pieces)
        for piece in pieces:
            # Made of the position in REPORTS, so that a batch that is folded again after a restart gets the
            # same ids.
            ids = [position * ROWS_PER_BATCH + index for index in piece.indexes]
            partition = self._partition(batch, piece, ids[0]) if judged.keeps_points else None
            if partition is not None:
                self._pending.setdefault(partition, []).append((ids, piece))
            if piece.group == VALIDATION:
                self._ranking.write(batch, piece, ids)

    def record_home(self, trial_id: int, experiment_id: int) -> None:
        """Record the experiment of a new trial, whatever its reports claim."""
        self._totals.record_home(trial_id, experiment_id)

    def finish(self) -> None:
        """Write everything collected so far."""
        self._write_points()
        self._totals.finish()

    def _write_points(self) -> None:
        if self._new_partitions:
            self._connection.execute(sa.insert(PARTITIONS), self._new_partitions)
        chunks.add(
            self._connection, {partition: _chunk(pending) for partition, pending in self._pending.items()}
        )
        self._new_partitions, self._pending, self._partitions_left = [], {}, {}
        self._ranking.finish()

    def drop_points(self, trial_id: int, through: int) -> None:
        """Remove a trial's points up to a position of REPORTS. Its statistics stay."""
        self.finish()
        for (partition,) in self._connection.execute(sa.select(P.id).where(P.trial_id == trial_id)).all():
            chunks.drop(self._connection, partition, (through + 1) * ROWS_PER_BATCH)

    def delete_trials(self, trial_ids: Sequence[int]) -> None:
        """Remove everything that trials reported."""
        self.finish()
        for trials in id_batches(list(trial_ids)):
            partitions = sa.select(P.id).where(P.trial_id.in_(trials))
            mine = sa.select(CHUNKS.c.id).where(CHUNKS.c.partition_id.in_(partitions))
            self._connection.execute(sa.delete(COLUMNS).where(COLUMNS.c.chunk_id.in_(mine)))
            self._connection.execute(sa.delete(CHUNKS).where(CHUNKS.c.partition_id.in_(partitions)))
            for table in (PARTITIONS, VALIDATIONS, SUMMARIES, TRIALS, HOMES):
                self._connection.execute(sa.delete(table).where(table.c.trial_id.in_(trials)))
        # It may name partitions that are gone.
        self._partition_ids = {}

    def _partition(self, batch: ReportBatch, piece: Piece, first_id: int) -> int | None:
        """The partition that a piece belongs to. A new one gets the id of its first report.

        None if the trial has as many partitions as it may: its points are not kept then, only its statistics.
        """
        key, names = _partition_key(batch, piece)
        if key not in self._partition_ids:
            if not self._has_room(batch.trial_id, len(names)):
                return None
            self._partition_ids[key] = self._add_partition(key, names, first_id)
        return self._partition_ids[key]

    def _has_room(self, trial_id: int, size: int) -> bool:
        """Whether the trial may have one more partition, with names of this size. Counts it if so."""
        if trial_id not in self._partitions_left:
            count, held = self._connection.execute(
                sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(sa.func.length(P.names)), 0)).where(
                    P.trial_id == trial_id
                )
            ).one()
            mine = [partition for partition in self._new_partitions if partition["trial_id"] == trial_id]
            held += sum(len(partition["names"]) for partition in mine)
            self._partitions_left[trial_id] = (
                MAX_PARTITIONS - count - len(mine),
                MAX_NAMES_BYTES - held,
            )
        left, left_bytes = self._partitions_left[trial_id]
        if left <= 0 or left_bytes < size:
            if trial_id not in self._full:
                self._full.add(trial_id)
                log.warning("points.not_kept", trial=trial_id, reason=_TOO_MANY_PARTITIONS)
            return False
        self._partitions_left[trial_id] = left - 1, left_bytes - size
        return True

    def _find_partitions(self, batch: ReportBatch, pieces: Sequence[Piece]) -> None:
        """Look up the stored partitions of these pieces.

        All of a batch together: one message may hold thousands of sets of names.
        """
        keys = {_partition_key(batch, piece)[0] for piece in pieces} - self._partition_ids.keys()
        digests = sorted({digest for *_, digest in keys})
        columns = (P.id, P.trial_id, P.run, P.kind, P.merges, P.digest)
        for some in id_batches(digests):
            mine = (P.trial_id == batch.trial_id, P.run == batch.run, P.digest.in_(some))
            for id, trial_id, run, kind, merges, digest in self._connection.execute(
                sa.select(*columns).where(*mine).order_by(P.id.desc())
            ):
                # The oldest of those with one key is the last here.
                self._partition_ids[trial_id, run, kind, bool(merges), bytes(digest)] = id

    def _add_partition(self, key: PartitionKey, names: bytes, first_id: int) -> int:
        columns = ("trial_id", "run", "kind", "merges", "digest")
        self._new_partitions.append({"id": first_id, "names": names} | dict(zip(columns, key, strict=True)))
        return first_id

    def _archive(self, trial_id: int, archive: Archive) -> None:
        """Archive outdated reports of earlier runs.

        They stay readable but no longer count (REST spec, section 4, rule 2).
        """
        self._write_points()
        # Other groups' reports at this very step were made before the one that began the new run.
        first = sa.case((P.kind == archive.group, archive.steps), else_=archive.steps + 1)
        # Only partitions with something to archive: a trial may have thousands, and a script as many runs.
        older = (
            sa.select(P.id, first)
            .join(CHUNKS, CHUNKS.c.partition_id == P.id)
            .where(P.trial_id == trial_id, P.run < archive.run)
            .where(CHUNKS.c.archived.is_(False), CHUNKS.c.last_steps >= first)
            .distinct()
            .order_by(P.id)
        )
        outdated = self._connection.execute(older).all()
        for partition, steps in outdated:
            chunks.archive(self._connection, partition, steps)
        if outdated:
            self._ranking.archive(trial_id, archive)
            self._totals.recount(trial_id)


def _partition_key(batch: ReportBatch, piece: Piece) -> tuple[PartitionKey, bytes]:
    """What identifies the partition of a piece, and its names."""
    # Sorted, because scripts build their dictionaries in any order.
    names = msgspec.json.encode(sorted(piece.columns))
    # An index on the names themselves could need megabytes for each entry.
    digest = hashlib.blake2b(names, digest_size=16).digest()
    return (batch.trial_id, batch.run, piece.group, piece.merges, digest), names


def _chunk(pending: PendingPieces) -> Chunk:
    pieces = [piece for _, piece in pending]
    names = sorted(pieces[0].columns)
    batched = None
    if any(piece.batch_metrics for piece in pieces):
        batched = [
            metrics for piece in pieces for metrics in (piece.batch_metrics or [None] * len(piece.steps))
        ]
    return sort(
        Chunk(
            np.array([id for ids, _ in pending for id in ids], np.int64),
            np.array([steps for piece in pieces for steps in piece.steps], np.int64),
            microseconds([at for piece in pieces for at in piece.at]),
            tuple(column([v for piece in pieces for v in piece.columns[name]]) for name in names),
            batched,
        )
    )
