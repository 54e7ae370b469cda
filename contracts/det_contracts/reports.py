"""Messages in REPORTS and LOGS: metric reports in columns, log lines in batches."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts import subjects
from det_contracts.limits import is_name

PROFILE_PREFIX = "profile."
"""Prefix of groups whose steps are not training steps; a worker's samples count seconds, for example."""
MAX_METRICS_PER_REPORT = 100_000
"""Maximum number of metrics in one report. Larger data is an array and belongs in a file."""
MAX_LINES_PER_BATCH = 4096
"""Maximum number of log lines in a message. Line ids are its position times this, plus the index in it."""
MAX_NAMES_PER_GROUP = 10_000
"""Metric names stored per group of a trial. All are read and written whenever one has a value."""
MAX_NAMES_PER_TRIAL = 30_000
"""Metric names stored for all groups of a trial together. Each name costs a column, even if rarely used."""

MAX_GROUPS_PER_TRIAL = 500
"""Groups stored per trial. Their latest steps are kept for the lifetime of the trial."""
MAX_VALIDATIONS_PER_TRIAL = 100_000
"""Validations of a trial. Each of them is an event, which is kept for as long as the log is."""
MAX_REFUSALS_PER_TRIAL = 1_000
"""Refused reports of a trial that become events, for the same reason. Further ones are refused in silence."""
MAX_REPORT_BYTES_PER_TRIAL = 8 << 30
"""Size of all report messages of a trial, in bytes: one script must not fill the disk of all others."""
RESERVED_GROUPS = frozenset({"training", "validation", "profile.process"})
"""Groups that are always stored, because the search and the worker depend on them."""


def is_training(group: str) -> bool:
    """Whether the steps of a group's reports are training steps.

    >>> is_training("validation"), is_training("profile.process")
    (True, False)
    """
    return not group.startswith(PROFILE_PREFIX)


class Series(msgspec.Struct, frozen=True):
    """Consecutive reports of one group with the same metric names, in the order they were made."""

    group: str
    """`training`, `validation` or a custom name."""
    steps: list[int]
    at: list[float]
    """Seconds since the epoch, UTC, by the script's clock."""
    columns: dict[str, list[Any]]
    """Metric name to one JSON value per step. NaN and infinities are the strings NaN, Infinity, -Infinity."""
    batch_metrics: list[Any] = []
    """Per step, the list of per-batch metrics or None; empty if no report had any."""


class ReportBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Reports of one run of a trial. Metrics accepts the first one for (trial, run, sender, number)."""

    trial_id: int
    experiment_id: int
    run: int
    number: int
    """Counts the sender's batches from 1. With 0, repetitions are detected only by their values."""
    searcher_metric: str
    """Name of the searcher metric."""
    smaller_is_better: bool
    series: list[Series]
    sender: str = ""
    """Who counts the batches, up to 64 characters. Processes of a run may report one after another."""


class LogLine(msgspec.Struct, frozen=True, array_like=True):
    """A line written by a task."""

    at: float
    """When it was read, in seconds since the epoch (UTC)."""
    stdtype: str
    """`stdout` or `stderr`."""
    level: str | None
    rank: int | None
    text: str
    """Without the prefix that rank and level were parsed from, and without the line ending."""


class LogBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of one allocation on one worker.

    Metrics accepts each (allocation, worker, source, offset) once.
    """

    task_id: str
    allocation_id: str
    worker_id: str
    source: str
    """`task` for the script's output, `agent` for lines added by the worker."""
    offset: int
    """Start of the batch in the worker's spool of that source; increases from batch to batch.
    -1: not in a spool; always accepted.
    """
    lines: list[LogLine]


def report_id(trial_id: int, run: int, number: int, sender: str = "") -> str:
    """Return the deduplication id of a report batch."""
    # The broker drops a second message with the same id within its window; a batch that is sent again after a
    # lost answer counts once.
    return f"report-{trial_id}-{run}-{number}" + (f"-{sender}" if sender else "")


def log_id(allocation_id: str, worker_id: str, source: str, offset: int) -> str:
    """Return the deduplication id of a log batch."""
    return f"log-{allocation_id}-{worker_id}-{source}-{offset}"


_log_batches = msgspec.json.Decoder(LogBatch)


def log_batch(subject: str, body: bytes) -> LogBatch | None:
    """Decode a message of LOGS. Returns None if it is unreadable or does not match its subject.

    All readers of LOGS skip the same messages, and a damaged one stops no reader.

    Args:
        subject: Subject of the message.
        body: Content of the message.

    >>> log_batch("logs.1", b"{") is None
    True
    """
    try:
        batch = _log_batches.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    names = batch.task_id, batch.allocation_id, batch.worker_id, batch.source
    return batch if is_valid_batch(subject, names, len(batch.lines)) else None


def is_valid_batch(subject: str, names: tuple[str, ...], lines: int) -> bool:
    """Whether a message of LOGS matches its subject and has valid identifiers.

    Args:
        subject: Subject of the message.
        names: Its task, allocation, worker and source, in this order.
        lines: Number of lines in it.
    """
    return lines <= MAX_LINES_PER_BATCH and subject == subjects.logs(names[0]) and all(map(is_name, names))
