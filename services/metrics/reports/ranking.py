"""Validations as rows for ranking: the best of a trial, its latest, those of an experiment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import sqlalchemy as sa

from det_contracts.queries import BestValidation, ValidationHistory
from det_contracts.reports import ReportBatch
from services.metrics.domain import VALIDATION, Archive, Piece
from services.metrics.paging import stream_rows
from services.metrics.reports.tables import TRIALS, VALIDATIONS
from services.metrics.values import as_finite

C = VALIDATIONS.c


MERGED_BYTES = 4 * 1024 * 1024
"""Size as JSON up to which keys are added to a validation here. Its points have all of them."""


@dataclass
class Addition:
    """What the reports of a commit add to a validation."""

    metrics: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)
    """What else changes in the row: its searcher metric."""


class Ranking:
    """Collects the validations of one commit."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._rows: list[dict[str, Any]] = []
        self._additions: dict[tuple[int, int, int], Addition] = {}
        """Keys that were added to validations, by trial, run and steps."""

    def write(self, batch: ReportBatch, piece: Piece, ids: list[int]) -> None:
        """Add accepted validations."""
        for index, id in enumerate(ids):
            row = _row(batch, piece, index, id)
            if piece.merges:
                self._add_keys(row)
            else:
                self._rows.append(row)

    def finish(self) -> None:
        """Write everything collected so far."""
        if self._rows:
            self._connection.execute(sa.insert(VALIDATIONS), self._rows)
        # After the rows, which they may add to.
        for key, addition in self._additions.items():
            self._merge(*key, addition)
        self._rows, self._additions = [], {}

    def _add_keys(self, row: dict[str, Any]) -> None:
        """Collect keys for the first validation at the same steps, which a script may add one by one."""
        key = row["trial_id"], row["run"], row["steps"]
        addition = self._additions.setdefault(key, Addition())
        for name, value in msgspec.json.decode(row["metrics"]).items():
            # What was reported first wins.
            addition.metrics.setdefault(name, value)
        if row["ranked"] and not addition.changes:
            addition.changes = {"ranked": True, "metric": row["metric"]}

    def _merge(self, trial_id: int, run: int, steps: int, addition: Addition) -> None:
        same = (C.trial_id == trial_id, C.run == run, C.steps == steps)
        query = sa.select(C.id, C.metrics).where(*same).order_by(C.id)
        stored_row = self._connection.execute(query).mappings().first()
        if stored_row is None:
            return
        changes = dict(addition.changes)
        added = msgspec.json.encode(addition.metrics)
        if len(added) + len(stored_row["metrics"]) <= MERGED_BYTES:
            both = addition.metrics | msgspec.json.decode(stored_row["metrics"])
            changes["metrics"] = msgspec.json.encode(both)
        if changes:
            self._connection.execute(sa.update(VALIDATIONS).where(C.id == stored_row["id"]).values(**changes))

    def archive(self, trial_id: int, archive: Archive) -> None:
        """Archive what a new run has made outdated."""
        first = archive.steps if archive.group == VALIDATION else archive.steps + 1
        outdated = (C.trial_id == trial_id, C.run < archive.run, C.steps >= first)
        self._connection.execute(sa.update(VALIDATIONS).where(*outdated).values(archived=True))


def _row(batch: ReportBatch, piece: Piece, index: int, id: int) -> dict[str, Any]:
    ranked = batch.searcher_metric in piece.columns
    return {
        "id": id,
        "trial_id": batch.trial_id,
        "run": batch.run,
        "steps": piece.steps[index],
        "at": piece.at[index],
        "metrics": msgspec.json.encode({name: values[index] for name, values in piece.columns.items()}),
        "ranked": ranked,
        "metric": as_finite(piece.columns[batch.searcher_metric][index]) if ranked else None,
        "archived": False,
    }


def best_and_latest(connection: sa.Connection, trial: Any) -> tuple[Any, Any]:
    """A trial's best and latest validation in their public form, each or None."""
    ranked = sa.select(VALIDATIONS).where(
        C.trial_id == trial["trial_id"], C.archived.is_(False), C.ranked.is_(True)
    )
    better = C.metric.asc() if trial["smaller_is_better"] else C.metric.desc()
    # By id among equals: the first that was as good stays the best, however often it is reached again.
    best = ranked.where(C.metric.is_not(None)).order_by(better, C.id)
    newest = ranked.order_by(C.steps.desc(), C.id.desc())
    return _first(connection, best), _first(connection, newest)


def _first(connection: sa.Connection, query: sa.Select[Any]) -> dict[str, Any] | None:
    row = connection.execute(query.limit(1)).mappings().first()
    if row is None:
        return None
    return {
        "steps_completed": row["steps"],
        "at": row["at"],
        "run": row["run"],
        "metrics": msgspec.json.decode(row["metrics"]),
        "metric": row["metric"],
    }


def best_validation(connection: sa.Connection, query: BestValidation) -> float | None:
    """The best searcher metric over the trials of an experiment."""
    best = sa.func.min(C.metric) if query.smaller_is_better else sa.func.max(C.metric)
    chosen = sa.select(best).where(C.trial_id.in_(_trials(query.experiment_id)), C.archived.is_(False))
    metric: float | None = connection.execute(chosen).scalar()
    return metric


def validation_history(connection: sa.Connection, query: ValidationHistory) -> list[dict[str, Any]]:
    """Each validation that was the best of its experiment when it was reported."""
    chosen = sa.select(C.trial_id, C.at, C.metric).where(
        C.trial_id.in_(_trials(query.experiment_id)), C.archived.is_(False), C.metric.is_not(None)
    )
    sign = 1 if query.smaller_is_better else -1
    best: float | None = None
    history = []
    for row in stream_rows(connection, chosen.order_by(C.at, C.id)):
        if best is None or sign * row["metric"] < sign * best:
            best = row["metric"]
            history.append(dict(row))
    return history


def _trials(experiment_id: int) -> sa.Select[Any]:
    return sa.select(TRIALS.c.trial_id).where(TRIALS.c.experiment_id == experiment_id)
