"""Queries to owners. Each docstring describes the `value` of the answer."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts import subjects
from det_contracts.commands import ChangeJob


class SearchProgress(msgspec.Struct, frozen=True, tag="search_progress"):
    """To the searcher: `{experiment id as text: 0..1}` for those of the given experiments that exist."""

    experiment_ids: list[int]


class SearchState(msgspec.Struct, frozen=True, tag="search_state"):
    """To the searcher: the complete folded state of one experiment and its trials, as JSON."""

    experiment_id: int


class PreviewSearch(msgspec.Struct, frozen=True, tag="preview_search"):
    """To the searcher: what a search would do, simulated without training.

    `config` is completed. Rows `{lengths: [training lengths requested of the trials, in order], trials:
    count}`.
    """

    config: dict[str, Any]


class SearchRungs(msgspec.Struct, frozen=True, tag="search_rungs"):
    """To the searcher: `{brackets: [[rung, ...], ...]}`, lowest rung first; no brackets for other searches.

    A rung is `{length, waiting, count, entries: [[trial id, metric or None, verdict], ...]}`: the number of
    trials on their way to it, the total number of entries, and the best entries, best first. Verdicts:
    promoted, stopped, waits, top, and left for a trial that gave up.
    """

    experiment_id: int


class SearcherEvents(msgspec.Struct, frozen=True, tag="searcher_events"):
    """To the searcher: `{state, events: [{id, event}]}` of an experiment whose searcher is `custom`."""

    experiment_id: int


class Waiting(msgspec.Struct, frozen=True, tag="waiting"):
    """To the scheduler: `{allocation id: a sentence that says why it waits}`."""

    experiment_id: int | None = None


class Jobs(msgspec.Struct, frozen=True, tag="jobs"):
    """To the scheduler: the queue of one pool, or of all, in order.

    Rows `{job_id, experiment_id, pool, state, priority, weight, max_slots, position, submitted_at,
    slots_requested, slots_allocated, jobs_ahead, waits_for}`; `waits_for` is a sentence or empty.
    """

    pool: str | None = None


class PreviewChange(msgspec.Struct, frozen=True, tag="preview_change"):
    """To the scheduler: the effect of changing a job, without changing it.

    `{order, starts, leave}`: owners of jobs in the queue's new order; those that would newly get slots
    immediately; and those that would newly be preempted. Refused if the change itself would be.
    """

    change: ChangeJob


class Pools(msgspec.Struct, frozen=True, tag="pools"):
    """To the scheduler: the resource pools.

    Rows `{name, description, settings, workers, slots, slots_used, aux_used, jobs, growth}`. `growth`
    describes the state of a pool with a provider in a sentence, if there is anything to report.
    """


class Provisioning(msgspec.Struct, frozen=True, tag="provisioning"):
    """To the scheduler: a row `{pool, newest, problem, workers}` for each pool that has a provider.

    `newest` is the number of the worker requested last. `workers` lists the requested workers that are not
    dismissed: `{id, number, phase, detail, ends_at, released}`; `released` says why a worker is given back.
    """

    pool: str | None = None
    """Limits the answer to this pool."""


class Fits(msgspec.Struct, frozen=True, kw_only=True, tag="fits"):
    """To the scheduler: empty text if the pool could ever place such a request, else what would fit.

    A pool without workers refuses nothing. An unknown pool is a problem (not_found).
    """

    pool: str
    slots: int
    single_agent: bool = False


class ClusterState(msgspec.Struct, frozen=True, tag="cluster_state"):
    """To the scheduler: its complete folded state, as JSON: workers, allocations, queue."""


class JobsUsed(msgspec.Struct, frozen=True, tag="jobs_used"):
    """To the scheduler: by quota holder `{slots, jobs}`: the current usage."""


class StorageUsed(msgspec.Struct, frozen=True, tag="storage_used"):
    """To checkpoints: by quota holder, the current usage in bytes of checkpoints."""


class StorageRefusal(msgspec.Struct, frozen=True, tag="storage_refusal"):
    """To checkpoints: `{reason: why the trial may not store a checkpoint of this size now, or ""}`."""

    trial_id: int
    size_bytes: int


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


class PreviewRetention(msgspec.Struct, frozen=True, kw_only=True, tag="preview_retention"):
    """To checkpoints: uuids that would be deleted if an experiment kept this many and ended now."""

    experiment_id: int
    experiment_best: int
    trial_best: int
    trial_latest: int


class Checkpoints(msgspec.Struct, frozen=True, kw_only=True, tag="checkpoints"):
    """To checkpoints: rows of the registry, newest last.

    `{uuid, trial_id, experiment_id, task_id, allocation_id, at, state, resources, metadata, steps_completed,
    metric, size_bytes, reason}`. Given filters are combined.
    """

    experiment_id: int | None = None
    trial_id: int | None = None
    uuids: list[str] = []


class Webhooks(msgspec.Struct, frozen=True, tag="webhooks"):
    """To webhooks: rows `{webhook_id, kind, host, url, signing_key, triggers: [{id, state}], user, waiting}`.

    Sorted by id; `waiting` is the number of pending deliveries.
    """


class Deliveries(msgspec.Struct, frozen=True, kw_only=True, tag="deliveries"):
    """To webhooks: `{rows, total}` of the stored deliveries of one webhook, newest first.

    A row is `{delivery_id, occasion, experiment, happened_at, state, next_at, attempts: [{attempt, at,
    status, problem, took_s}], reason}`.
    """

    webhook_id: int
    offset: int = 0
    limit: int = 100


OWNER_OF: dict[type, str] = {
    SearchProgress: "searcher",
    SearchState: "searcher",
    SearchRungs: "searcher",
    PreviewSearch: "searcher",
    SearcherEvents: "searcher",
    Waiting: "scheduler",
    Jobs: "scheduler",
    PreviewChange: "scheduler",
    Pools: "scheduler",
    Fits: "scheduler",
    Provisioning: "scheduler",
    ClusterState: "scheduler",
    JobsUsed: "scheduler",
    StorageUsed: "checkpoints",
    StorageRefusal: "checkpoints",
    TrialSummaries: "metrics",
    TrialStatistics: "metrics",
    Reports: "metrics",
    ReportWindow: "metrics",
    ReportVerdict: "metrics",
    LogPage: "metrics",
    BestValidation: "metrics",
    MetricNames: "metrics",
    ReportedSteps: "metrics",
    Series: "metrics",
    Buckets: "metrics",
    ValidationHistory: "metrics",
    LogFields: "metrics",
    LogCause: "metrics",
    StoredLines: "metrics",
    Checkpoints: "checkpoints",
    PreviewRetention: "checkpoints",
    Webhooks: "webhooks",
    Deliveries: "webhooks",
}


class Ask(msgspec.Struct, frozen=True):
    """A query message. It is answered once the owner has read `stream` up to `min_position`.

    Answers from tables can wait only for CONTROL.
    """

    body: msgspec.Raw
    min_position: int = 0
    stream: str = subjects.CONTROL
