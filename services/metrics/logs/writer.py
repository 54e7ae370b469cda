"""Writes folded batches of log lines as chunks, in the transaction that saves the snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from services.kit.database import id_batches, upsert
from services.metrics.domain import LogLines
from services.metrics.logs import tiers
from services.metrics.logs.chunk import Lines, join_lines, lines_of_batch, pack, split_lines, unpack
from services.metrics.logs.tables import CHUNKS, LINES_PER_BATCH, TASKS
from services.metrics.logs.trigrams import trigrams

C = CHUNKS.c
FLUSH_BYTES = 16 * 1024 * 1024
"""Lines are written when this much has been collected, in bytes of JSON."""
Row = dict[str, Any]


class LineWriter:
    """Collects the lines of one commit."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._new_lines: dict[str, list[Lines]] = {}
        self._collected_bytes = 0
        self._expired_counts: Counter[str] = Counter()

    def write(self, batch: LogLines, position: int, first: int = 0) -> None:
        """Add an accepted batch.

        `position` is its position in LOGS; `first` is its first line's index there.
        """
        if batch.count:
            self._new_lines.setdefault(batch.task_id, []).append(lines_of_batch(batch, position, first))
            self._collected_bytes += memoryview(batch.lines).nbytes
        # After a long standstill, one commit may hold more lines than there is memory.
        if self._collected_bytes > FLUSH_BYTES:
            self.finish()

    def count_expired(self, batch: LogLines) -> None:
        """Count lines past retention, so that the lines after them keep their numbers."""
        self._expired_counts[batch.task_id] += batch.count

    def delete_tasks(self, task_ids: Sequence[str]) -> None:
        """Delete the lines of tasks, including collected ones."""
        self.finish()
        for table in (CHUNKS, TASKS):
            for id_batch in id_batches(task_ids):
                self._connection.execute(sa.delete(table).where(table.c.task_id.in_(id_batch)))

    def delete_experiment(self, experiment_id: int) -> None:
        """Delete the lines of all tasks of an experiment."""
        self.finish()
        id: sa.ColumnElement[str] = TASKS.c.task_id
        if self._connection.dialect.name == "postgresql":
            # Otherwise PostgreSQL orders text, and so the index, by language rules.
            id = id.collate("C")
        # No character of an id is between these two.
        mine = sa.select(TASKS.c.task_id).where(id > f"{experiment_id}.", id < f"{experiment_id}/")
        self.delete_tasks(list(self._connection.scalars(mine)))

    def trim(self, through: int) -> None:
        """Delete all lines of batches up to a position of LOGS."""
        self.finish()
        first = (through + 1) * LINES_PER_BATCH
        self._connection.execute(sa.delete(CHUNKS).where(C.last_id < first))
        split = sa.select(C.first_id).where(C.first_id < first)
        for first_id in self._connection.execute(split).scalars().all():
            (row,) = self._pop_chunks([first_id]).values()
            lines = _unpack_row(row)
            trimmed = int(lines.ids.searchsorted(first))
            rest = lines.slice(trimmed, len(lines))
            full = row["tier"] == tiers.FULL
            self._insert([_row(row["task_id"], rest, row["number"] + trimmed, full=full)])

    def finish(self) -> None:
        """Write everything collected so far."""
        fresh = {task_id: join_lines(parts) for task_id, parts in self._new_lines.items()}
        self._new_lines, self._collected_bytes = {}, 0
        # Before anything is written, as these are the numbers of the lines before the new ones.
        totals = self._totals({*fresh, *self._expired_counts})
        for task_id, count in self._expired_counts.items():
            totals[task_id] += count
        self._expired_counts.clear()
        open_chunks = self._open_chunks(fresh)
        to_merge = {
            task_id: _chunks_to_merge(open_chunks.get(task_id, []), lines) for task_id, lines in fresh.items()
        }
        old = self._pop_chunks([row["first_id"] for rows in to_merge.values() for row in rows])
        rows: list[Row] = []
        for task_id, lines in fresh.items():
            before = [old[row["first_id"]] for row in to_merge[task_id]]
            number = before[0]["number"] if before else totals[task_id]
            rows += _rows(task_id, join_lines([*map(_unpack_row, before), lines]), number)
        self._insert(rows)
        counts = [{"task_id": id, "lines": n + len(fresh.get(id, ()))} for id, n in totals.items()]
        upsert(self._connection, TASKS, counts)

    def _totals(self, task_ids: Iterable[str]) -> dict[str, int]:
        totals = dict.fromkeys(task_ids, 0)
        for id_batch in id_batches(list(totals)):
            query = sa.select(TASKS.c.task_id, TASKS.c.lines).where(TASKS.c.task_id.in_(id_batch))
            totals |= {id: lines for id, lines in self._connection.execute(query)}
        return totals

    def _open_chunks(self, task_ids: Iterable[str]) -> dict[str, list[Any]]:
        """The chunks of tasks that are not full, oldest first."""
        chunk_rows: list[Any] = []
        for id_batch in id_batches(sorted(task_ids)):
            query = sa.select(C.task_id, C.first_id, C.weight).where(
                C.task_id.in_(id_batch), C.tier < tiers.FULL
            )
            chunk_rows += self._connection.execute(query).mappings().all()
        chunk_rows.sort(key=lambda row: (row["task_id"], row["first_id"]))
        return {id: list(rows) for id, rows in groupby(chunk_rows, key=lambda row: str(row["task_id"]))}

    def _pop_chunks(self, first_ids: Sequence[int]) -> dict[int, Any]:
        """Fetch and delete chunks that will be merged into others."""
        chunk_rows: dict[int, Any] = {}
        for id_batch in id_batches(first_ids):
            query = sa.select(CHUNKS).where(C.first_id.in_(id_batch))
            chunk_rows |= {row["first_id"]: row for row in self._connection.execute(query).mappings()}
        self._delete(first_ids)
        return chunk_rows

    def _delete(self, first_ids: Sequence[int]) -> None:
        for id_batch in id_batches(first_ids):
            self._connection.execute(sa.delete(CHUNKS).where(C.first_id.in_(id_batch)))

    def _insert(self, rows: list[Row]) -> None:
        if rows:
            self._connection.execute(sa.insert(CHUNKS), rows)


def _chunks_to_merge(tail: list[Any], lines: Lines) -> list[Any]:
    """Which of a task's newest chunks are merged with these lines."""
    weights = [row["weight"] for row in tail]
    count = tiers.merge_count([*weights, tiers.weight_of(len(lines), lines.size)]) - 1
    return tail[len(tail) - count :]


def _unpack_row(row: Any) -> Lines:
    return unpack(row["kinds"], row["columns"], row["texts"], row["lines"])


def _rows(task_id: str, lines: Lines, number: int) -> Iterable[Row]:
    for piece in split_lines(lines):
        full = tiers.tier_of(tiers.weight_of(len(piece), piece.size)) == tiers.FULL
        yield _row(task_id, piece, number, full=full)
        number += len(piece)


def _row(task_id: str, lines: Lines, number: int, *, full: bool) -> Row:
    weight = tiers.weight_of(len(lines), lines.size)
    kinds, columns, texts, text = pack(lines, full=full)
    # Only for chunks that are never written again: a map is 8 KiB, as much as many small chunks hold.
    bitmap = trigrams(text) if full else None
    return {
        "first_id": int(lines.ids[0]),
        "last_id": int(lines.ids[-1]),
        "task_id": task_id,
        "tier": tiers.FULL if full else tiers.tier_of(weight),
        "weight": weight,
        "number": number,
        "lines": len(lines),
        "first_at": int(lines.at.min()),
        "last_at": int(lines.at.max()),
        "stored": len(kinds) + len(columns) + len(texts) + len(bitmap or b""),
        "kinds": kinds,
        "columns": columns,
        "trigrams": bitmap,
        "texts": texts,
    }
