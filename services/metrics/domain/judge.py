"""The verdict about one batch of reports (REST spec, section 4, metric rules)."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import msgspec

from det_contracts.events import metrics
from det_contracts.reports import ReportBatch, Series
from services.metrics.domain.ledger import Conflict, Ledger
from services.metrics.domain.state import VALIDATION, Archive, Finding, Group, Refusal, Row, Trial, group_key
from services.metrics.values import finite, number

MOST_STEPS = 2**53
MOST_REFUSALS = 8
replace = msgspec.structs.replace


class Judge:
    """Judges a batch row by row, on copies; afterwards the results are in its attributes."""

    def __init__(self, known: Trial, groups: Mapping[str, Group], batch: ReportBatch, position: int) -> None:
        self.rows: list[Row] = []
        self.archive: Archive | None = None
        self._known = known
        self._groups = groups
        self._batch = batch
        self._ledgers: dict[str, Ledger] = {}
        self._decided = known.decided
        self._pending = list(known.pending)
        self._position = position
        self._refusals = known.refusals
        self._index = 0

    def take(self) -> Trial:
        """Judge every report; returns the trial after them."""
        if self._batch.run < self._known.run:
            self._refuse_outdated()
            return replace(
                self._known,
                decided=self._decided,
                pending=tuple(self._pending),
                refusals=self._refusals[-MOST_REFUSALS:],
            )
        for series in self._batch.series:
            self._take_series(series)
        return replace(
            self._known,
            run=self._batch.run,
            batch=self._batch.number or (self._known.batch if self._batch.run == self._known.run else 0),
            opened=self._batch.run if self.rows else self._known.opened,
            decided=self._decided,
            pending=tuple(self._pending),
            refusals=self._refusals[-MOST_REFUSALS:],
        )

    def groups(self) -> dict[str, Group]:
        """The groups that changed, by their keys in the state."""
        return {group_key(self._known.id, name): ledger.close() for name, ledger in self._ledgers.items()}

    def _refuse_outdated(self) -> None:
        first = self._batch.series[0] if self._batch.series else None
        group, steps = (first.group, first.steps[0]) if first and first.steps else ("", 0)
        reason = f"invalid run id, {self._batch.run} (reported) != {self._known.run} (expected)"
        self._refuse(group, steps, f"{reason}: a newer run of trial {self._known.id} reports now")

    def _take_series(self, series: Series) -> None:
        if not _even(series):
            self._refuse(series.group, 0, "its columns have different lengths")
            return
        ledger = self._ledger(series.group)
        names = tuple(series.columns)
        kinds = {batched: ledger.kind(names, batched) for batched in (False, bool(series.batch_metrics))}
        for place, steps in enumerate(series.steps):
            batched = series.batch_metrics[place] if series.batch_metrics else None
            row = Row(
                index=self._index,
                group=series.group,
                steps=steps,
                at=series.at[place],
                metrics={name: series.columns[name][place] for name in names},
                batch_metrics=batched,
            )
            self._index += 1
            self._take_row(row, ledger, kinds[batched is not None])

    def _ledger(self, name: str) -> Ledger:
        if name not in self._ledgers:
            known = self._groups.get(group_key(self._known.id, name))
            fresh = known is None or known.run != self._batch.run
            self._ledgers[name] = Ledger(Group(run=self._batch.run) if known is None or fresh else known)
        return self._ledgers[name]

    def _take_row(self, row: Row, ledger: Ledger, kind: int) -> None:
        wrong = _wrong(row)
        if wrong is None:
            digest = zlib.crc32(msgspec.json.encode((row.metrics, row.batch_metrics), order="sorted"))
            try:
                entry = ledger.enter(kind, row.steps, digest)
            except Conflict as conflict:
                wrong = str(conflict)
        if wrong is not None:
            self._refuse(row.group, row.steps, wrong)
        elif entry != "same":
            self._accept(replace(row, merges=True) if entry == "merged" else row)

    def _accept(self, row: Row) -> None:
        if 0 < self._known.opened < self._batch.run and not self.rows:
            self.archive = Archive(self._batch.run, row.group, row.steps)
        self.rows.append(row)
        # What is merged says something new about a validation only when it brings the searcher metric.
        if row.group == VALIDATION and not (row.merges and self._batch.searcher_metric not in row.metrics):
            self._validated(row)

    def _validated(self, row: Row) -> None:
        self._decided += 1
        decision = metrics.Validated(
            trial_id=self._known.id,
            number=self._decided,
            run=self._batch.run,
            steps_completed=row.steps,
            metric=finite(row.metrics.get(self._batch.searcher_metric)),
            reported_at=row.at,
        )
        self._queue(Finding(self._decided, validated=decision))

    def _refuse(self, group: str, steps: int, reason: str) -> None:
        self._decided += 1
        decision = metrics.ReportRefused(
            trial_id=self._known.id,
            number=self._decided,
            run=self._batch.run,
            group=group,
            steps_completed=steps,
            reason=f"{group} metrics at {steps} steps were refused: {reason}",
        )
        self._queue(Finding(self._decided, refused=decision))
        self._refusals = (*self._refusals, Refusal(self._position, reason))

    def _queue(self, finding: Finding) -> None:
        # When CONTROL was folded first, the decision is there already.
        if finding.number > self._known.stated:
            self._pending.append(finding)


def _even(series: Series) -> bool:
    lengths = {len(series.at), *(len(column) for column in series.columns.values())}
    return lengths <= {len(series.steps)} and len(series.batch_metrics) in (0, len(series.steps))


def _wrong(row: Row) -> str | None:
    if not 0 <= row.steps < MOST_STEPS:
        return f"steps_completed must be between 0 and {MOST_STEPS - 1}"
    epoch = row.metrics.get("epoch", 0)
    return None if number(epoch) is not None else f"metric 'epoch' must be a number, not {epoch!r}"
