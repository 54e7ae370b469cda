"""What flows through REPORTS and LOGS: metric reports in columns, log lines in batches."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts import subjects
from det_contracts.limits import is_name

PROFILED = "profile."
"""Begins the names of groups whose steps are not those of the training: a worker's samples count seconds."""
MOST_NAMES = 100_000
"""Metrics of one report; what has more is an array, and belongs into a file."""
LINES_OF_BATCH = 4096
"""Log lines of one message: their ids are its position times this, plus the place within it."""
KEPT_NAMES = 10_000
"""Metric names of a group of a trial that are kept: all are read and written whenever one has a value."""
KEPT_NAMES_OF_TRIAL = 30_000
"""Of all groups of a trial together: each name costs its own column, however little is reported under it."""

KEPT_GROUPS = 500
"""Groups of a trial that are kept: what each was reported at is remembered for as long as the trial lives."""
KEPT_ALWAYS = frozenset({"training", "validation", "profile.process"})
"""Groups that have room whatever others there are: what the search and the worker report under."""


def is_training(group: str) -> bool:
    """Whether the steps of a group's reports are steps of the training.

    >>> is_training("validation"), is_training("profile.process")
    (True, False)
    """
    return not group.startswith(PROFILED)


class Series(msgspec.Struct, frozen=True):
    """Consecutive reports of one group with the same metric names, in the order they were made."""

    group: str
    """`training`, `validation` or a name of the user's."""
    steps: list[int]
    at: list[float]
    """Seconds since the epoch, UTC, by the script's clock."""
    columns: dict[str, list[Any]]
    """Metric name to one JSON value per step; NaN and infinities as the strings NaN, Infinity, -Infinity."""
    batch_metrics: list[Any] = []
    """Per step the list of per-batch metrics or None; empty when no report had any."""


class ReportBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Reports of one run of a trial. Metrics takes the first one for (trial, run, sender, number)."""

    trial_id: int
    experiment_id: int
    run: int
    number: int
    """Counts the batches of a sender from 1; 0: not counted, a repeat is known by its values alone."""
    searcher_metric: str
    """Name of the metric that the search looks at."""
    smaller_is_better: bool
    series: list[Series]
    sender: str = ""
    """Whose batches are counted, in 64 characters: one process of a run may report after the other."""


class LogLine(msgspec.Struct, frozen=True, array_like=True):
    """One line that a task wrote."""

    at: float
    """When it was read; seconds since the epoch, UTC."""
    stdtype: str
    """`stdout` or `stderr`."""
    level: str | None
    rank: int | None
    text: str
    """Without the prefix that rank and level were parsed from, and without the line end."""


class LogBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of one allocation on one worker. Metrics takes each (allocation, worker, source, offset) once."""

    task_id: str
    allocation_id: str
    worker_id: str
    source: str
    """`task` for the script's output, `agent` for lines that the worker adds."""
    offset: int
    """Where the batch begins in the worker's spool of that source; grows from batch to batch.
    -1: in no spool, and taken whenever it comes."""
    lines: list[LogLine]


def report_id(trial_id: int, run: int, number: int, sender: str = "") -> str:
    """De-duplication id of a report batch."""
    return f"report-{trial_id}-{run}-{number}" + (f"-{sender}" if sender else "")


def log_id(allocation_id: str, worker_id: str, source: str, offset: int) -> str:
    """De-duplication id of a log batch."""
    return f"log-{allocation_id}-{worker_id}-{source}-{offset}"


_log_batches = msgspec.json.Decoder(LogBatch)


def log_batch(subject: str, body: bytes) -> LogBatch | None:
    """The lines of a message of LOGS; None for what cannot be read, or is not what its subject says.

    Whoever reads LOGS passes over the same messages: one that is damaged ends nobody's reading.

    Args:
        subject: Where the message lies.
        body: What it holds.

    >>> log_batch("logs.1", b"{") is None
    True
    """
    try:
        batch = _log_batches.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    names = batch.task_id, batch.allocation_id, batch.worker_id, batch.source
    return batch if is_sound(subject, names, len(batch.lines)) else None


def is_sound(subject: str, names: tuple[str, ...], lines: int) -> bool:
    """Whether a message of LOGS is its subject's, and can be known by its names.

    Args:
        subject: Where it lies.
        names: Of its task, allocation, worker and source, in this order.
        lines: How many it holds.
    """
    return lines <= LINES_OF_BATCH and subject == subjects.logs(names[0]) and all(map(is_name, names))
