"""Queries to metrics: reports, curves and log lines."""

from __future__ import annotations

import msgspec


class TrialSummaries(msgspec.Struct, frozen=True, tag="trial_summaries"):
    """To metrics: per trial id (text) `{total_batches, best_validation, latest_validation, summary}`.

    A validation is `{steps_completed, at, metrics, run}`; `summary` is group -> name -> statistics.
    """

    trial_ids: list[int]


class TrialStatistics(msgspec.Struct, frozen=True, kw_only=True, tag="trial_statistics"):
    """To metrics: `[[trial id, {count, last, min, max, mean, ...}], ...]` of the trials that have it."""

    trial_ids: list[int]
    group: str
    name: str


class Reports(msgspec.Struct, frozen=True, kw_only=True, tag="reports"):
    """To metrics: `{rows: [...], more: whether further rows exist}`.

    A row is `{id, trial_id, run, group, steps_completed, at, metrics, batch_metrics, archived}`, ordered by
    trial, run and steps. `after` is (trial, run, steps, id) of the last row of the previous page.
    """

    trial_ids: list[int]
    group: str | None = None
    profiled: bool = True
    """Without a group: whether to include groups that start with `profile.`."""
    archived: bool = True
    after: tuple[int, int, int, int] | None = None
    limit: int = 1000


class ReportWindow(msgspec.Struct, frozen=True, kw_only=True, tag="report_window"):
    """To metrics: `{total, rows}`, a part of a trial's reports by index, without archived ones.

    They are ordered by steps; at the same steps, validations come last. Rows are as in `Reports`, starting at
    index `offset`: `limit` of them, or as many as fit into an answer.
    """

    trial_id: int
    group: str | None = None
    profiled: bool = True
    """Without a group: whether to include groups that start with `profile.`."""
    offset: int = 0
    limit: int = 0


class ReportVerdict(msgspec.Struct, frozen=True, tag="report_verdict"):
    """To metrics, at that position of REPORTS: why the batch stored there was refused; empty if it was not.

    Only the latest few refusals of a trial are kept.
    """

    trial_id: int
    position: int


class LogPage(msgspec.Struct, frozen=True, kw_only=True, tag="log_page"):
    """To metrics: `{lines, more, cursor, number, through: position of LOGS that the answer reflects}`.

    A line is `{id, number, task_id, allocation_id, worker_id, at, level, rank, source, stdtype, text}`. Ids
    are increasing; numbers count the task's lines from 1. With `more`, the page is incomplete because it is
    full or the search took too long: ask again with `after_id` = `cursor`, even if no line was found.
    `number` is the number of the line at the cursor. A `regex` (RE2) takes precedence over `text`.
    """

    task_id: str
    after_id: int = 0
    limit: int = 1000
    descending: bool = False
    allocation_ids: list[str] = []
    worker_ids: list[str] = []
    ranks: list[int] = []
    levels: list[str] = []
    stdtypes: list[str] = []
    sources: list[str] = []
    before_at: float | None = None
    after_at: float | None = None
    text: str = ""
    regex: str = ""
    from_number: int = 0
    """Only lines from this number on, or up to it in descending order."""


class BestValidation(msgspec.Struct, frozen=True, tag="best_validation"):
    """To metrics: the best searcher metric of the experiment so far, or None."""

    experiment_id: int
    smaller_is_better: bool


class MetricNames(msgspec.Struct, frozen=True, tag="metric_names"):
    """To metrics: `{group: [metric names, sorted]}` over all trials of these experiments."""

    experiment_ids: list[int]


class ReportedSteps(msgspec.Struct, frozen=True, kw_only=True, tag="reported_steps"):
    """To metrics: `{steps: [...], more}`: the steps at which any trial of an experiment reported a metric.

    In increasing order without duplicates, above `after`. Archived reports are excluded.
    """

    experiment_id: int
    group: str
    metric: str
    after: int = -1


class Series(msgspec.Struct, frozen=True, kw_only=True, tag="series"):
    """To metrics: rows `{trial_id, group, points: [[steps, at, epoch or None, {name: value}], ...]}`.

    Numbers only; NaN and infinities are strings. Archived reports are excluded. A series of more than `limit`
    points is thinned: the extremes of equal ranges of steps and both ends are kept. With `nearest`, only the
    point nearest to that number of steps is returned for each series.
    """

    trial_ids: list[int]
    names: list[str]
    group: str | None = None
    first: int = 0
    last: int | None = None
    limit: int = 1000
    nearest: int | None = None


class Buckets(msgspec.Struct, frozen=True, kw_only=True, tag="buckets"):
    """To metrics: curves divided into `width` buckets of neighboring points.

    One row per trial, group and name. `x` is `batches`, `epoch`, `time` (seconds since the epoch, UTC) or
    `metric:NAME`, limited by `first` and `last`. Rows `{trial_id, group, name, count, non_finite, raw,
    monotone, x, batches, last, min, max, mean, counts, gaps}`; the lists have one entry per non-empty bucket,
    ordered by steps. `x` and `batches` belong to a bucket's last point; `last`, `min`, `max`, `mean` describe
    its finite values, None if there are none; `counts` is the number of all values, `gaps` of non-finite
    ones. `raw`: each bucket is one point, and only `x`, `batches` and `last` are given. Not `monotone`: x
    also decreases. Archived reports are excluded.
    """

    trial_ids: list[int]
    names: list[str]
    group: str | None = None
    x: str = "batches"
    first: float | None = None
    last: float | None = None
    width: int = 1000


class ValidationHistory(msgspec.Struct, frozen=True, tag="validation_history"):
    """To metrics: rows `{trial_id, at, metric}`, each better than all earlier ones of the experiment."""

    experiment_id: int
    smaller_is_better: bool


class LogFields(msgspec.Struct, frozen=True, tag="log_fields"):
    """To metrics: the distinct fields of a task's log lines, their number, and the places of failures.

    `{places: [[allocation id, worker id], ...], ranks, stdtypes, sources, levels: {level or "": lines},
    lines, last_number, last_line, first_error, failing_line, marks: [[part, errors, warnings], ...]}`. Lists
    are sorted; a rank may be None. The line ids, or None, are: the last line, the first error, and the last
    error of the lowest rank in the newest run that had any. `marks` divides the log into 240 equal parts and
    lists those with errors or warnings.
    """

    task_id: str


class LogCause(msgspec.Struct, frozen=True, tag="log_cause"):
    """To metrics: what failed first in the newest run of a task that had an error; None if none had.

    `{allocation_id, rank, worker_id, last_at, failed_at, line, ranks: [{rank, worker_id, last_at, failed_at,
    line}, ...]}`. For each rank: the time of its last line, and time and id of the first of the errors that
    it ended with, None if it ended without an error. The rank itself may be None.
    """

    task_id: str


class StoredLines(msgspec.Struct, frozen=True, kw_only=True, tag="stored_lines"):
    """To metrics: `{bytes, first_young, last}` of all log lines.

    `bytes` is their size as stored; `last` is the last position of LOGS with lines, and `first_young` the
    first one with a line that is not older than `before`, or None. Lines from the future do not count as
    young.
    """

    before: float
    """In seconds since the epoch."""
    now: float
