"""Which reports and log batches count, as a fold.

There is no order between REPORTS, LOGS and CONTROL, so every rule here looks at one of them
alone: whatever the streams are folded in, the end is the same. Points and lines are not kept in
memory; the verdict about them travels with the event to the read model (`Judged`).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from det_contracts.envelope import Recorded
from det_contracts.events import metrics, searcher
from det_contracts.reports import LogBatch, ReportBatch, Series
from services.metrics.values import finite

Key = tuple[str, Any]
VALIDATION = "validation"
WINDOW = 4096
"""Newest steps of a group whose keys are remembered; further back a duplicate is merged, the first stays."""
replace = msgspec.structs.replace


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One accepted report."""

    index: int
    """Place in its batch."""
    group: str
    steps: int
    at: float
    metrics: dict[str, Any]
    batch_metrics: Any = None
    merges: bool = False
    """New keys for steps that were reported before."""


class Archive(msgspec.Struct, frozen=True):
    """The first report of a new run: what earlier runs reported at these steps or later is outdated."""

    run: int
    group: str
    steps: int


@dataclass
class Judged:
    """A batch of a data stream, with the verdict that the fold writes beside it."""

    batch: ReportBatch | LogBatch
    accepted: bool = False
    rows: list[Row] = field(default_factory=list)
    archive: Archive | None = None


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """What was reported at one number of steps."""

    names: tuple[str, ...]
    digest: int
    """Of the values of the last report."""


class Finding(msgspec.Struct, frozen=True):
    """What a report led to: one of the two."""

    number: int
    validated: metrics.Validated | None = None
    refused: metrics.ReportRefused | None = None


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What must be remembered of a trial's reports to judge the next one."""

    id: int
    run: int = 0
    """The newest run that has reported."""
    batch: int = 0
    """Newest batch of that run."""
    seen: dict[str, dict[int, Seen]] = {}
    """Group -> steps -> what was reported in the present run."""
    decided: int = 0
    """Decisions that the reports led to."""
    stated: int = 0
    """Decisions that are in CONTROL."""
    pending: tuple[Finding, ...] = ()


class Open(msgspec.Struct, frozen=True):
    """A trial that has ended, until it is settled."""

    trial_id: int


class Source(msgspec.Struct, frozen=True):
    """How far the log of one source of an allocation has come."""

    offset: int


@dataclass
class State:
    """Everything that the metrics service folds."""

    trials: dict[int, Trial] = field(default_factory=dict)
    ended: dict[int, Open] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)


def evolve(state: State, recorded: Recorded) -> Iterable[Key]:
    """Fold one event of any of the three streams; returns the records that it replaced."""
    fold = _FOLDS.get(type(recorded.event))
    return fold(state, recorded.event) if fold is not None else ()


def _judged(state: State, event: Judged) -> Iterable[Key]:
    if isinstance(event.batch, LogBatch):
        return _log(state, event, event.batch)
    return _reports(state, event, event.batch)


def _log(state: State, event: Judged, batch: LogBatch) -> Iterable[Key]:
    key = f"{batch.allocation_id} {batch.worker_id} {batch.source}"
    known = state.sources.get(key)
    if known is not None and batch.offset <= known.offset:
        return
    event.accepted = True
    state.sources[key] = Source(batch.offset)
    yield "sources", key


def _reports(state: State, event: Judged, batch: ReportBatch) -> Iterable[Key]:
    known = state.trials.get(batch.trial_id) or Trial(id=batch.trial_id)
    if batch.run == known.run and batch.number <= known.batch:
        return
    event.accepted = True
    judge = _Judge(known, event, batch)
    state.trials[batch.trial_id] = judge.take()
    yield "trials", batch.trial_id


class _Judge:
    """One batch's verdict, row by row."""

    def __init__(self, known: Trial, event: Judged, batch: ReportBatch) -> None:
        self._known = known
        self._event = event
        self._batch = batch
        self._outdated = batch.run < known.run
        self._seen = dict(known.seen) if batch.run == known.run else {}
        self._copied: set[str] = set()
        self._decided = known.decided
        self._pending = list(known.pending)
        self._index = 0

    def take(self) -> Trial:
        """Judge every report; returns the trial after them."""
        batch, known = self._batch, self._known
        for series in batch.series:
            self._take_series(series)
        if self._outdated:
            return replace(known, decided=self._decided, pending=tuple(self._pending))
        return replace(
            known,
            run=batch.run,
            batch=batch.number,
            seen=self._seen,
            decided=self._decided,
            pending=tuple(self._pending),
        )

    def _take_series(self, series: Series) -> None:
        names = tuple(series.columns)
        for place, steps in enumerate(series.steps):
            values = {name: series.columns[name][place] for name in names}
            batched = series.batch_metrics[place] if series.batch_metrics else None
            row = Row(
                index=self._index,
                group=series.group,
                steps=steps,
                at=series.at[place],
                metrics=values,
                batch_metrics=batched,
            )
            self._index += 1
            self._take_row(row, names)

    def _take_row(self, row: Row, names: tuple[str, ...]) -> None:
        wrong = self._wrong(row)
        if wrong is not None:
            self._refuse(row, wrong)
            return
        earlier = self._window(row.group).get(row.steps)
        digest = zlib.crc32(msgspec.json.encode((row.metrics, row.batch_metrics)))
        if earlier is not None:
            if earlier == Seen(names, digest):
                return
            twice = next((name for name in names if name in earlier.names), None)
            if twice is not None:
                message = f"overwriting existing metric keys is not supported, conflicting key: {twice}"
                self._refuse(row, message)
                return
            row = replace(row, merges=True)
            names = (*earlier.names, *names)
        if self._batch.run > self._known.run and not self._event.rows:
            self._event.archive = Archive(self._batch.run, row.group, row.steps)
        self._remember(row, Seen(names, digest))
        self._event.rows.append(row)
        if row.group == VALIDATION:
            self._accept_validation(row)

    def _wrong(self, row: Row) -> str | None:
        if self._outdated:
            reported, expected = self._batch.run, self._known.run
            return f"invalid run id, {reported} (reported) != {expected} (expected)"
        epoch = row.metrics.get("epoch", 0)
        if isinstance(epoch, bool) or not isinstance(epoch, int | float):
            return f"the metric 'epoch' must be a number, not {epoch!r}"
        return None

    def _window(self, group: str) -> dict[int, Seen]:
        return self._seen.get(group, {})

    def _remember(self, row: Row, seen: Seen) -> None:
        if row.group not in self._copied:
            self._seen[row.group] = dict(self._window(row.group))
            self._copied.add(row.group)
        window = self._seen[row.group]
        window[row.steps] = seen
        if len(window) > WINDOW:
            del window[next(iter(window))]

    def _accept_validation(self, row: Row) -> None:
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

    def _refuse(self, row: Row, reason: str) -> None:
        self._decided += 1
        decision = metrics.ReportRefused(
            trial_id=self._known.id,
            number=self._decided,
            run=self._batch.run,
            group=row.group,
            steps_completed=row.steps,
            reason=f"{row.group} metrics at {row.steps} steps were refused: {reason}",
        )
        self._queue(Finding(self._decided, refused=decision))

    def _queue(self, finding: Finding) -> None:
        # When CONTROL was folded first, the decision is there already.
        if finding.number > self._known.stated:
            self._pending.append(finding)


def _stated(state: State, event: metrics.Validated | metrics.ReportRefused) -> Iterable[Key]:
    known = state.trials.get(event.trial_id) or Trial(id=event.trial_id)
    stated = max(known.stated, event.number)
    pending = tuple(finding for finding in known.pending if finding.number > stated)
    state.trials[known.id] = replace(known, stated=stated, pending=pending)
    yield "trials", known.id


def _trial_ended(state: State, event: searcher.TrialEnded) -> Iterable[Key]:
    state.ended[event.trial_id] = Open(event.trial_id)
    yield "ended", event.trial_id


def _settled(state: State, event: metrics.Settled) -> Iterable[Key]:
    state.ended.pop(event.trial_id, None)
    yield "ended", event.trial_id


_FOLDS: dict[type, Callable[[State, Any], Iterable[Key]]] = {
    Judged: _judged,
    metrics.Validated: _stated,
    metrics.ReportRefused: _stated,
    metrics.Settled: _settled,
    searcher.TrialEnded: _trial_ended,
}
