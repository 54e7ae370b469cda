"""What can be read from an owner. Each docstring says what `value` of the answer holds."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts import subjects
from det_contracts.commands import ChangeJob


class SearchProgress(msgspec.Struct, frozen=True, tag="search_progress"):
    """To the searcher: `{experiment id as text: 0..1}` for the experiments asked about that exist."""

    experiment_ids: list[int]


class SearchState(msgspec.Struct, frozen=True, tag="search_state"):
    """To the searcher: the whole folded state of one experiment and its trials, as JSON."""

    experiment_id: int


class PreviewSearch(msgspec.Struct, frozen=True, tag="preview_search"):
    """To the searcher: what a search would do, played without training.

    `config` is completed. Rows `{lengths: [what trials are asked to train to, in order], trials: how many}`.
    """

    config: dict[str, Any]


class SearchRungs(msgspec.Struct, frozen=True, tag="search_rungs"):
    """To the searcher: `{brackets: [[rung, ...], ...]}`, lowest rung first; no bracket for other searches.

    A rung is `{length, waiting, count, entries: [[trial id, metric or None, verdict], ...]}`: trials on their
    way to it, all entries, the best of them, best first. Verdicts: promoted, stopped, waits, top, and left
    for a trial that gave up.
    """

    experiment_id: int


class SearcherEvents(msgspec.Struct, frozen=True, tag="searcher_events"):
    """To the searcher: `{state, events: [{id, event}]}` of an experiment whose searcher is `custom`."""

    experiment_id: int


class Waiting(msgspec.Struct, frozen=True, tag="waiting"):
    """To the scheduler: `{allocation id: one sentence why it waits}`."""

    experiment_id: int | None = None


class Jobs(msgspec.Struct, frozen=True, tag="jobs"):
    """To the scheduler: the queue of one pool, or of all, in order.

    Rows `{job_id, experiment_id, pool, state, priority, weight, max_slots, position, submitted_at,
    slots_requested, slots_allocated, jobs_ahead, waits_for}`; `waits_for` is a sentence, or empty.
    """

    pool: str | None = None


class PreviewChange(msgspec.Struct, frozen=True, tag="preview_change"):
    """To the scheduler: what a change of a job would lead to, without making it.

    `{order, starts, leave}`: owners of jobs in the queue's new order, those that would get slots at once
    and those that would be asked to leave, where that is not so already. Refused as the change would be.
    """

    change: ChangeJob


class Pools(msgspec.Struct, frozen=True, tag="pools"):
    """To the scheduler: rows `{name, description, settings, workers, slots, slots_used, aux_used, jobs,
    growth}`.

    `growth` says in a sentence how a pool that gets workers by itself stands, if there is something to say.
    """


class Provisioning(msgspec.Struct, frozen=True, tag="provisioning"):
    """To the scheduler: a row `{pool, newest, problem, workers}` for each pool that has a provider.

    `newest` is the number of the worker that was asked for last. `workers` has those that were asked for and
    are not dismissed: `{id, number, phase, detail, ends_at, released}`, the last one why it is given back.
    """

    pool: str | None = None
    """Only of this pool."""


class Fits(msgspec.Struct, frozen=True, kw_only=True, tag="fits"):
    """To the scheduler: empty text when the pool could ever place such a request, else what would fit.

    A pool without a worker refuses nothing; an unknown pool is a problem (not_found).
    """

    pool: str
    slots: int
    single_agent: bool = False


class ClusterState(msgspec.Struct, frozen=True, tag="cluster_state"):
    """To the scheduler: its whole folded state, as JSON: workers, allocations, queue."""


class JobsUsed(msgspec.Struct, frozen=True, tag="jobs_used"):
    """To the scheduler: by holder of a quota `{slots, jobs}`: what counts for it at present."""


class StorageUsed(msgspec.Struct, frozen=True, tag="storage_used"):
    """To checkpoints: by holder of a quota the bytes of checkpoints that count for it at present."""


class StorageRefusal(msgspec.Struct, frozen=True, tag="storage_refusal"):
    """To checkpoints: `{reason: why the trial may not store a checkpoint of so many bytes now, or ""}`."""

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
    """To metrics: `{rows: [...], more: whether the page was cut short of what there is}`.

    A row is `{id, trial_id, run, group, steps_completed, at, metrics, batch_metrics, archived}`, in order of
    trial, run and steps; `after` is (trial, run, steps, id) of the last row of the page before.
    """

    trial_ids: list[int]
    group: str | None = None
    profiled: bool = True
    """Where no group is named: whether those that begin with `profile.` are among them."""
    archived: bool = True
    after: tuple[int, int, int, int] | None = None
    limit: int = 1000


class ReportWindow(msgspec.Struct, frozen=True, kw_only=True, tag="report_window"):
    """To metrics: `{total, rows}`, a part of a trial's reports by place, without what was archived.

    They are in order of steps, at the same steps validations last; rows as `Reports` has them, from place
    `offset`, `limit` of them or as many as fit into an answer.
    """

    trial_id: int
    group: str | None = None
    profiled: bool = True
    """Where no group is named: whether those that begin with `profile.` are among them."""
    offset: int = 0
    limit: int = 0


class ReportVerdict(msgspec.Struct, frozen=True, tag="report_verdict"):
    """To metrics, at that position of REPORTS: why the batch stored there was refused; empty if it was not.

    Refusals are remembered for the newest few of a trial.
    """

    trial_id: int
    position: int


class LogPage(msgspec.Struct, frozen=True, kw_only=True, tag="log_page"):
    """To metrics: `{lines, more, cursor, number, through: position of LOGS it is true at}`.

    A line is `{id, number, task_id, allocation_id, worker_id, at, level, rank, source, stdtype, text}`; ids
    grow, numbers count the task's lines from 1. `more`: the page was cut short, because it is full or the
    search took long; ask again with `after_id` = `cursor` then, even where no line was found. `number` is
    that of the line at the cursor. A `regex` (RE2) goes before `text`.
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
    """To metrics: `{steps: [...], more}`, where any trial of an experiment reported a metric.

    Growing, each once, those above `after`; what was archived is left out.
    """

    experiment_id: int
    group: str
    metric: str
    after: int = -1


class Series(msgspec.Struct, frozen=True, kw_only=True, tag="series"):
    """To metrics: rows `{trial_id, group, points: [[steps, at, epoch or None, {name: value}], ...]}`.

    Numbers only, NaN and infinities spelled as text; what was archived is left out. A series of more than
    `limit` points is thinned: the extremes of equal stretches of steps stay, and so do both ends. With
    `nearest`, of each series only the point stays that is nearest to so many steps.
    """

    trial_ids: list[int]
    names: list[str]
    group: str | None = None
    first: int = 0
    last: int | None = None
    limit: int = 1000
    nearest: int | None = None


class Buckets(msgspec.Struct, frozen=True, kw_only=True, tag="buckets"):
    """To metrics: curves cut to `width` buckets of neighbouring points, one row per trial, group and name.

    `x` is `batches`, `epoch`, `time` (seconds since the epoch, UTC) or `metric:NAME`; `first` and `last`
    bound it. Rows `{trial_id, group, name, count, non_finite, raw, monotone, x, batches, last, min, max,
    mean, counts, gaps}`; the lists have one entry per bucket that is not empty, in order of steps. `x` and
    `batches` are those of its last point; `last`, `min`, `max`, `mean` of its finite values, None without
    any; `counts` are all of its values, `gaps` those that are not finite. `raw`: each bucket is a point, and
    only `x`, `batches` and `last` are told. Not `monotone`: x goes back and forth. What was archived is left
    out.
    """

    trial_ids: list[int]
    names: list[str]
    group: str | None = None
    x: str = "batches"
    first: float | None = None
    last: float | None = None
    width: int = 1000


class ValidationHistory(msgspec.Struct, frozen=True, tag="validation_history"):
    """To metrics: rows `{trial_id, at, metric}`, each better than all that the experiment had before it."""

    experiment_id: int
    smaller_is_better: bool


class LogFields(msgspec.Struct, frozen=True, tag="log_fields"):
    """To metrics: what the lines of a task differ in, how many they are, and where they tell of a failure.

    `{places: [[allocation id, worker id], ...], ranks, stdtypes, sources, levels: {level or "": lines},
    lines, last_number, last_line, first_error, failing_line, marks: [[part, errors, warnings], ...]}`; lists
    are sorted, a rank may be None. Ids of lines or None are the last line, the first error of all, and the
    last error of the lowest rank in the newest run that had any. `marks` are of the parts of the log that
    have any, of 240 of equal length.
    """

    task_id: str


class LogCause(msgspec.Struct, frozen=True, tag="log_cause"):
    """To metrics: who failed first in the newest run of a task that had an error; None where none had.

    `{allocation_id, rank, worker_id, last_at, failed_at, line, ranks: [{rank, worker_id, last_at, failed_at,
    line}, ...]}`. Of each rank: when it told its last line, and time and id of the first of the errors that
    it ended with, None where it ended with none. The rank itself may be None.
    """

    task_id: str


class PreviewRetention(msgspec.Struct, frozen=True, kw_only=True, tag="preview_retention"):
    """To checkpoints: uuids of what would go if an experiment kept that many, were it over now."""

    experiment_id: int
    experiment_best: int
    trial_best: int
    trial_latest: int


class Checkpoints(msgspec.Struct, frozen=True, kw_only=True, tag="checkpoints"):
    """To checkpoints: rows of the registry, newest last.

    `{uuid, trial_id, experiment_id, task_id, allocation_id, at, state, resources, metadata, steps_completed,
    metric, size_bytes, reason}`; the filters that are given apply together.
    """

    experiment_id: int | None = None
    trial_id: int | None = None
    uuids: list[str] = []


class Webhooks(msgspec.Struct, frozen=True, tag="webhooks"):
    """To webhooks: rows `{webhook_id, kind, host, url, signing_key, triggers: [{id, state}], user, waiting}`.

    By id; `waiting` counts the deliveries that are still to be made.
    """


class Deliveries(msgspec.Struct, frozen=True, kw_only=True, tag="deliveries"):
    """To webhooks: `{rows, total}` of the deliveries of one webhook that are remembered, newest first.

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
    Checkpoints: "checkpoints",
    PreviewRetention: "checkpoints",
    Webhooks: "webhooks",
    Deliveries: "webhooks",
}


class Ask(msgspec.Struct, frozen=True):
    """A question on the wire: answered once the owner has read `stream` up to `min_position`.

    What is answered from tables can wait for CONTROL only.
    """

    body: msgspec.Raw
    min_position: int = 0
    stream: str = subjects.CONTROL
