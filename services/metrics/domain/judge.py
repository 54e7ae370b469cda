"""Judges one batch of reports (REST spec, section 4, metric rules)."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from itertools import islice
from operator import lt

import msgspec

from det_contracts.events import metrics
from det_contracts.reports import (
    MAX_REFUSALS_PER_TRIAL,
    MAX_REPORT_BYTES_PER_TRIAL,
    MAX_VALIDATIONS_PER_TRIAL,
    RESERVED_GROUPS,
    ReportBatch,
    Series,
    is_training,
)
from services.metrics.domain.ledger import RECENT, REMEMBERED_BYTES, Conflict, Effort, KindKey, Ledger
from services.metrics.domain.state import (
    VALIDATION,
    Archive,
    Finding,
    Group,
    Piece,
    Refusal,
    Trial,
    group_key,
)
from services.metrics.values import as_finite, as_number

MAX_STEPS = 2**53
MAX_REFUSALS = 8
MAX_GROUP_CHARACTERS = 255
MAX_REASON_CHARACTERS = 300
"""Maximum length of a refusal, in characters: the offending value may be as large as a message."""
replace = msgspec.structs.replace


class Judge:
    """Judges a batch series by series, on copies. The results are in its attributes afterwards."""

    def __init__(
        self,
        trial: Trial,
        groups: Mapping[str, Group],
        free_groups: int,
        batch: ReportBatch,
        position: int,
        size: int,
    ) -> None:
        """`groups` are those of all trials. This trial may have `free_groups` more.

        `position` and `size` are those of the message.
        """
        self.pieces: list[Piece] = []
        self.archive: Archive | None = None
        self.groups: dict[str, Group] = {}
        """The groups that changed, by their keys in the state."""
        self.findings: list[Finding] = []
        """Decisions to be recorded in CONTROL."""
        self._trial = trial
        # The state's own table, which is only read here: the results are put back by the fold.
        self._groups = groups
        self._free_groups = free_groups
        self._batch = batch
        self._ledgers: dict[str, Ledger] = {}
        self._effort = Effort()
        self._decided = trial.decided
        self._refused = trial.refused
        # Messages, not points: that is what the stream and the fold have had to carry.
        self._size = trial.size + size
        self._position = position
        self._refusals = trial.refusals
        self._reports_before = 0
        self._has_training_reports = False
        """Whether an accepted report counts training steps."""

    def judge_batch(self) -> Trial:
        """Judge every report. Returns the trial after them."""
        # A process of an earlier run may outlive it, or have been cut off with its host. Its steps would mix
        # with those of the current run.
        if self._batch.run < self._trial.run:
            reason = f"invalid run id, {self._batch.run} (reported) != {self._trial.run} (expected)"
            self._refuse_batch(f"{reason}: a newer run of trial {self._trial.id} reports now")
            return self._judged(self._trial)
        if self._size > MAX_REPORT_BYTES_PER_TRIAL:
            self._refuse_batch(
                f"trial {self._trial.id} has reported more than {MAX_REPORT_BYTES_PER_TRIAL >> 20} MiB, and "
                "nothing further is stored. Report fewer metrics, or less often"
            )
            return self._judged(self._trial.after_batch(self._batch))
        for series in self._batch.series:
            self._judge_series(series)
        trial = self._judged(self._trial.after_batch(self._batch))
        return replace(
            trial,
            opened=self._batch.run if self._has_training_reports else self._trial.opened,
            size=self._size,
            remembered=self._close_groups(),
        )

    def _judged(self, trial: Trial) -> Trial:
        refusals = self._refusals[-MAX_REFUSALS:]
        return replace(trial, decided=self._decided, refused=self._refused, refusals=refusals)

    def _close_groups(self) -> int:
        """Close the ledgers. Returns the sum of the weights of all groups of the trial."""
        weight = self._trial.remembered
        for name, ledger in self._ledgers.items():
            key = group_key(self._trial.id, name)
            before = self._groups.get(key)
            # Records of an earlier version have the weight 0, so the sum may fall below what is taken off.
            weight = max(0, weight - (before.weight if before is not None else 0))
            self.groups[key] = ledger.close(REMEMBERED_BYTES - weight)
            weight += self.groups[key].weight
        return weight

    def _refuse_batch(self, reason: str) -> None:
        first = self._batch.series[0] if self._batch.series else None
        group, steps = (first.group, first.steps[0]) if first and first.steps else ("", 0)
        self._refuse(group, steps, reason)

    def _judge_series(self, series: Series) -> None:
        if len(series.group) > MAX_GROUP_CHARACTERS:
            self._refuse(
                series.group, 0, f"the name of a group has at most {MAX_GROUP_CHARACTERS} characters"
            )
            return
        if not _has_equal_lengths(series):
            self._refuse(series.group, 0, "its columns have different lengths")
            return
        if not self._is_kept(series.group):
            # Treated like a metric beyond the kept names: the script does not fail, and its log says so.
            self._reports_before += len(series.steps)
            return
        validated = self._decided - self._refused
        # Each validation is an event in CONTROL, which is kept for good (decision 71).
        if series.group == VALIDATION and validated + len(series.steps) > MAX_VALIDATIONS_PER_TRIAL:
            first = series.steps[0] if series.steps else 0
            self._refuse(series.group, first, f"a trial has at most {MAX_VALIDATIONS_PER_TRIAL} validations")
            return
        ledger = self._ledger(series.group)
        names = tuple(series.columns)
        kinds = {batched: ledger.kind(names, batched) for batched in (False, bool(series.batch_metrics))}
        if _has_only_new_steps(series, ledger.highest):
            self._accept_all(series, ledger, kinds[bool(series.batch_metrics)])
        else:
            for index in range(len(series.steps)):
                self._judge_row(series, index, ledger, kinds)
        self._reports_before += len(series.steps)

    def _accept_all(self, series: Series, ledger: Ledger, kind: KindKey) -> None:
        """The common case of only new steps. None of them can have been reported before."""
        digests = [_digest(series, index) for index in range(len(series.steps))[-RECENT:]]
        ledger.extend(kind, series.steps, digests)
        self._accept(series, range(len(series.steps)), merges=False)

    def _accept(self, series: Series, indexes: Sequence[int], *, merges: bool) -> None:
        first = indexes[0]
        # The run continues from a training step.
        if is_training(series.group):
            # Only a run that reports training after an earlier one did makes anything outdated. The first
            # never does.
            is_newer = 0 < self._trial.opened < self._batch.run or self._follows_run_zero(series.group)
            if is_newer and not self._has_training_reports:
                self.archive = Archive(self._batch.run, series.group, series.steps[first])
            self._has_training_reports = True
        self.pieces.append(_piece(series, indexes, self._reports_before, merges))
        # Merged keys matter to a validation only if they include the searcher metric.
        if series.group == VALIDATION and not (merges and self._batch.searcher_metric not in series.columns):
            for index in indexes:
                self._record_validation(series, index)

    def _follows_run_zero(self, group: str) -> bool:
        """Whether the group has reports from before the first run, which `opened` does not count."""
        stored_group = self._groups.get(group_key(self._trial.id, group))
        return stored_group is not None and stored_group.run == 0 < self._batch.run

    def _is_kept(self, group: str) -> bool:
        """Whether a group is known, or there is room for it."""
        if (
            group in self._ledgers
            or group in RESERVED_GROUPS
            or group_key(self._trial.id, group) in self._groups
        ):
            return True
        self._free_groups -= 1
        return self._free_groups >= 0

    def _ledger(self, name: str) -> Ledger:
        if name not in self._ledgers:
            stored_group = self._groups.get(group_key(self._trial.id, name))
            fresh = stored_group is None or stored_group.run != self._batch.run
            group = Group(run=self._batch.run) if stored_group is None or fresh else stored_group
            self._ledgers[name] = Ledger(group, self._effort)
        return self._ledgers[name]

    def _judge_row(self, series: Series, index: int, ledger: Ledger, kinds: Mapping[bool, KindKey]) -> None:
        error = _row_error(series, index)
        if error is None:
            kind = kinds[bool(series.batch_metrics) and series.batch_metrics[index] is not None]
            try:
                entry = ledger.enter(kind, series.steps[index], _digest(series, index))
            except Conflict as conflict:
                error = str(conflict)
        if error is not None:
            self._refuse(series.group, series.steps[index], error)
        elif entry != "same":
            self._accept(series, (index,), merges=entry == "merged")

    def _record_validation(self, series: Series, index: int) -> None:
        self._decided += 1
        metric = series.columns.get(self._batch.searcher_metric)
        decision = metrics.Validated(
            trial_id=self._trial.id,
            number=self._decided,
            run=self._batch.run,
            steps_completed=series.steps[index],
            metric=None if metric is None else as_finite(metric[index]),
            reported_at=series.at[index],
        )
        self._queue(Finding(self._decided, validated=decision))

    def _refuse(self, group: str, steps: int, reason: str) -> None:
        group, reason = group[:MAX_GROUP_CHARACTERS], reason[:MAX_REASON_CHARACTERS]
        if self._refused >= MAX_REFUSALS_PER_TRIAL:
            # Who asks about this very batch is told; the log is not filled with it.
            self._refusals = (*self._refusals[-MAX_REFUSALS:], Refusal(self._position, reason))
            return
        self._refused += 1
        self._decided += 1
        steps = min(max(steps, -1), MAX_STEPS)
        decision = metrics.ReportRefused(
            trial_id=self._trial.id,
            number=self._decided,
            run=self._batch.run,
            group=group,
            steps_completed=steps,
            reason=f"{group} metrics at {steps} steps were refused: {reason}",
        )
        self._queue(Finding(self._decided, refused=decision))
        refusal = Refusal(self._position, reason, self._decided, self._batch.run, decision.reason)
        self._refusals = (*self._refusals, refusal)

    def _queue(self, finding: Finding) -> None:
        # If CONTROL was folded first, the decision is there already.
        if finding.number > self._trial.stated:
            self.findings.append(finding)


def _has_equal_lengths(series: Series) -> bool:
    lengths = {len(series.at), *(len(column) for column in series.columns.values())}
    return lengths <= {len(series.steps)} and len(series.batch_metrics) in (0, len(series.steps))


def _has_only_new_steps(series: Series, highest: int) -> bool:
    """Whether the steps are valid, growing and beyond the group's highest, so nothing needs comparing."""
    steps = series.steps
    return (
        len(steps) > 0
        and max(highest, -1) < steps[0]
        and steps[-1] < MAX_STEPS
        and all(map(lt, steps, islice(steps, 1, None)))
        and None not in series.batch_metrics
        and all(as_number(epoch) is not None for epoch in series.columns.get("epoch", ()))
    )


def _piece(series: Series, indexes: Sequence[int], before: int, merges: bool) -> Piece:
    """The reports at some places of a series. `before` reports of the batch come before the series."""
    if len(indexes) == len(series.steps):
        steps, at, columns, batched = series.steps, series.at, series.columns, series.batch_metrics
        numbers: Sequence[int] = range(before, before + len(steps))
    else:
        steps, at = [series.steps[n] for n in indexes], [series.at[n] for n in indexes]
        columns = {name: [column[n] for n in indexes] for name, column in series.columns.items()}
        batched = [series.batch_metrics[n] for n in indexes] if series.batch_metrics else []
        numbers = [before + n for n in indexes]
    return Piece(
        indexes=numbers,
        group=series.group,
        steps=steps,
        at=at,
        columns=columns,
        batch_metrics=batched,
        merges=merges,
    )


def _digest(series: Series, index: int) -> int:
    values = {name: column[index] for name, column in series.columns.items()}
    batched = series.batch_metrics[index] if series.batch_metrics else None
    # Sorted, because a script that sends a report again may have built its dictionary in another order.
    return zlib.crc32(msgspec.json.encode((values, batched), order="sorted"))


def _row_error(series: Series, index: int) -> str | None:
    if not 0 <= series.steps[index] < MAX_STEPS:
        return f"steps_completed must be between 0 and {MAX_STEPS - 1}"
    epoch = series.columns["epoch"][index] if "epoch" in series.columns else 0
    return None if as_number(epoch) is not None else f"metric 'epoch' must be a number, not {epoch!r}"
