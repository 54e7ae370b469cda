"""Finds the rank that failed first: the earliest of the errors with which the ranks of a run ended.

Only columns are read, no text. A rank ended with an error if it printed only a few more lines after it.
Errors after which it continued, such as a skipped batch, are not part of the failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import numpy as np
import sqlalchemy as sa

from det_contracts.queries import LogCause
from services.metrics.logs.chunk import MICROSECONDS, Kind, KindStats, read_columns, read_kinds
from services.metrics.logs.tables import CHUNKS

C = CHUNKS.c
MAX_LINES = 200_000
"""Number of lines at the end of a run that are examined."""
MAX_LINES_AFTER_ERROR = 200
"""Number of lines that a rank may still print after its final error: a traceback can be that long."""
MAX_LINES_BETWEEN_ERRORS = 100
"""Maximum number of lines between two errors of the same failure."""


class RankEnd(msgspec.Struct, frozen=True):
    """How one rank of a run ended."""

    rank: int | None
    worker_id: str
    last_at: float
    failed_at: float | None = None
    line: int | None = None
    """Id of the first error of those that it ended with."""


def log_cause(connection: sa.Connection, query: LogCause) -> dict[str, Any] | None:
    """The cause of a failure, and how each rank ended. None if no line is an error."""
    where = C.task_id == query.task_id
    rows = connection.execute(sa.select(C.first_id, C.lines, C.kinds).where(where).order_by(C.last_id)).all()
    chunks = [(row.first_id, row.lines, read_kinds(row.kinds)) for row in rows]
    newest = newest_failure(stats for _, _, kind_stats in chunks for stats in kind_stats)
    if newest is None:
        return None
    has_task_errors = any(
        _is_from_task(stats)
        for _, _, kind_stats in chunks
        for stats in kind_stats
        if _has_error_in(stats, newest)
    )
    tail = _tail(connection, chunks, newest, task_only=has_task_errors)
    ranks = [_end_of_rank(rank, tail) for rank in sorted(set(tail.rank.tolist()))]
    cause = _first_failed(ranks) or _last_error(tail)
    shown = [msgspec.structs.asdict(rank_end) for rank_end in ranks]
    return {"allocation_id": newest, **msgspec.structs.asdict(cause), "ranks": shown}


def newest_failure(kind_stats: Iterable[KindStats]) -> str | None:
    """The allocation of the newest run that had an error."""
    with_errors = [stats for stats in kind_stats if stats.last_error is not None]
    return (
        max(with_errors, key=lambda stats: stats.last_error or 0).kind.allocation_id if with_errors else None
    )


def _has_error_in(stats: KindStats, allocation_id: str) -> bool:
    return stats.last_error is not None and stats.kind.allocation_id == allocation_id


def _is_from_task(stats: KindStats) -> bool:
    return stats.kind.source == "task"


class _Tail(msgspec.Struct, frozen=True):
    """The last lines of a run, in columns."""

    ids: Any
    at: Any
    rank: Any
    """-1: none"""
    worker: Any
    workers: list[str]
    errors: Any


def _tail(connection: sa.Connection, chunks: list[Any], allocation_id: str, *, task_only: bool) -> _Tail:
    workers: dict[str, int] = {}

    def is_wanted(kind: Kind) -> bool:
        return kind.allocation_id == allocation_id and (kind.source == "task" or not task_only)

    def parts() -> Iterator[tuple[Any, ...]]:
        line_count = 0
        for first_id, count, kind_stats in reversed(chunks):
            kinds = [stats.kind for stats in kind_stats]
            wanted = np.array([is_wanted(kind) for kind in kinds], bool)
            if not wanted.any() or line_count > MAX_LINES:
                continue
            packed = connection.execute(sa.select(C.columns).where(C.first_id == first_id)).scalar_one()
            columns = read_columns(packed, count)
            mine = wanted[columns.kind]
            rank = np.array([-1 if kind.rank is None else kind.rank for kind in kinds], np.int64)
            worker = np.array([workers.setdefault(kind.worker_id, len(workers)) for kind in kinds], np.int64)
            kind = columns.kind[mine]
            yield columns.ids[mine], columns.at[mine], rank[kind], worker[kind], columns.errors[mine]
            line_count += int(mine.sum())

    ids, at, rank, worker, errors = (np.concatenate(arrays[::-1]) for arrays in zip(*parts(), strict=True))
    return _Tail(ids, at, rank, worker, list(workers), errors)


def _end_of_rank(rank: int, tail: _Tail) -> RankEnd:
    indexes = np.flatnonzero(tail.rank == rank)
    last = indexes[-1]
    rank_end = RankEnd(
        None if rank < 0 else rank, tail.workers[tail.worker[last]], int(tail.at[last]) / MICROSECONDS
    )
    start = _failure_start(np.flatnonzero(tail.errors[indexes]), len(indexes))
    if start is None:
        return rank_end
    at = indexes[start]
    return msgspec.structs.replace(
        rank_end, failed_at=int(tail.at[at]) / MICROSECONDS, line=int(tail.ids[at])
    )


def _failure_start(errors: Any, count: int) -> int | None:
    """The index of the first of the errors with which these lines end."""
    if not len(errors) or count - 1 - errors[-1] > MAX_LINES_AFTER_ERROR:
        return None
    apart = np.flatnonzero(np.diff(errors) > MAX_LINES_BETWEEN_ERRORS)
    return int(errors[apart[-1] + 1] if len(apart) else errors[0])


def _first_failed(ranks: list[RankEnd]) -> RankEnd | None:
    """The rank that failed first.

    Lines without a rank, such as a launcher's, say less than a failed rank's.
    """
    failed = [rank_end for rank_end in ranks if rank_end.line is not None]
    named = [rank_end for rank_end in failed if rank_end.rank is not None] or failed
    return min(named, key=lambda rank_end: (rank_end.failed_at or 0.0, rank_end.line or 0), default=None)


def _last_error(tail: _Tail) -> RankEnd:
    """If every rank continued after its errors, report the newest error."""
    with_errors = np.flatnonzero(tail.errors)
    at = with_errors[-1] if len(with_errors) else len(tail.ids) - 1
    rank, moment = int(tail.rank[at]), int(tail.at[at]) / MICROSECONDS
    worker = tail.workers[tail.worker[at]]
    return RankEnd(None if rank < 0 else rank, worker, moment, moment, int(tail.ids[at]))
