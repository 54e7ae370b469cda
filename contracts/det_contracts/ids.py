"""Identifiers used across the platform.

Experiments and trials have small increasing integers, assigned by the searcher. A *task* is something that
can run (`<experiment>.<request id>` for a trial); an *allocation* is one run of it (`<task>.<run>`).
"""

from __future__ import annotations

import hashlib
import re

_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
MAX_DIGITS = 18
"""Digits of an id at most. A longer number names nothing, and does not fit into a database's column."""
_OF_DELETIONS = "gc-"
REQUEST_ID_RULE = f"letters, digits, '-' and '_', at most 64, and does not begin with '{_OF_DELETIONS}'"
TASK_PORTS = range(10000, 30000)
"""The range from which workers assign each allocation its ports to listen on."""
WORKER_ID_RULE = "letters, digits, '-' and '_', at most 64 of them"


def trial_task_id(experiment_id: int, request_id: str) -> str:
    """Return the task id of a trial. It is the same for all its runs."""
    return f"{experiment_id}.{request_id}"


def deletion_task_id(experiment_id: int, number: int) -> str:
    """Return the id of a task that deletes an experiment's checkpoints.

    `number` counts per experiment from 1.
    """
    return f"{experiment_id}.{_OF_DELETIONS}{number}"


def allocation_id(task_id: str, run: int) -> str:
    """Return the id of one run of a task; `run` counts from 1."""
    return f"{task_id}.{run}"


def task_of(allocation: str) -> str:
    """Return the task of an allocation."""
    # From the right, because a trial's task id contains a dot itself.
    task, dot, _ = allocation.rpartition(".")
    if not dot:
        raise ValueError(f"'{allocation}' is not an allocation id: expected <task id>.<run>")
    return task


def container_id(allocation: str, worker_id: str) -> str:
    """Return the container id of an allocation's share of one worker: 32 hexadecimal digits."""
    # Computed, not stored: every part of the platform can name the container before it exists. A run has one
    # on each of its workers.
    return hashlib.sha256(f"{allocation}@{worker_id}".encode()).hexdigest()[:32]


def job_id(owner: int) -> str:
    """Return the id in the job queue: one job per experiment, and one per task without an experiment.

    `owner` is the experiment's id, or the result of `owner_of_task`.
    """
    return f"experiment-{owner}" if owner > 0 else f"task-{-owner}"


def owner_of_task(number: int) -> int:
    """Return the substitute for an experiment id, for a task with its own job. `number` counts from 1."""
    # Negative, so that it is never the id of an experiment.
    return -number


def parse_number(text: str) -> int | None:
    """Return the id that a text from a client is, or None if it is none.

    `int` alone raises for digits of some scripts (`"²"`), and for more than 4,300 of them.

    >>> parse_number("12"), parse_number("x"), parse_number("-1"), parse_number("9" * 5000)
    (12, None, None, None)
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS else None


def owner_of_job(job: str) -> int | None:
    """Return the `owner` of a job id, or None if it is not a job id."""
    kind, _, text = job.partition("-")
    number = parse_number(text)
    if kind not in ("experiment", "task") or number is None:
        return None
    return number if kind == "experiment" else -number


def is_token(text: str) -> bool:
    """Whether `text` is valid as one token of a subject, and therefore as a worker id."""
    return len(text) <= 64 and _TOKEN.fullmatch(text) is not None


def is_request_id(text: str) -> bool:
    """Whether `text` may name a trial of an experiment: its task's id must not be that of a deletion task."""
    return is_token(text) and not text.startswith(_OF_DELETIONS)
