"""How things are named across the platform.

Experiments and trials carry small increasing integers, given out by the searcher. A *task* is
what may run (`<experiment>.<request id>` for a trial), an *allocation* one run of it (`<task>.<run>`).
"""

from __future__ import annotations

import hashlib
import re

_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
TASK_PORTS = range(10000, 30000)
"""From these, workers give each allocation some to listen on."""
WORKER_ID_RULE = "letters, digits, '-' and '_', at most 64 of them"


def trial_task_id(experiment_id: int, request_id: str) -> str:
    """The task of a trial; stays the same over all its runs."""
    return f"{experiment_id}.{request_id}"


def deletion_task_id(experiment_id: int, number: int) -> str:
    """The task that deletes checkpoints of an experiment; `number` counts them per experiment from 1."""
    return f"{experiment_id}.gc-{number}"


def allocation_id(task_id: str, run: int) -> str:
    """One run of a task; `run` counts from 1."""
    return f"{task_id}.{run}"


def task_of(allocation: str) -> str:
    """The task that an allocation is a run of."""
    task, dot, _ = allocation.rpartition(".")
    if not dot:
        raise ValueError(f"'{allocation}' is not an allocation id: expected <task id>.<run>")
    return task


def container_id(allocation: str, worker_id: str) -> str:
    """What stands for a container: an allocation's share of one worker. 32 hexadecimal digits."""
    return hashlib.sha256(f"{allocation}@{worker_id}".encode()).hexdigest()[:32]


def job_id(owner: int) -> str:
    """The unit of the job queue: one per experiment, and one per task that belongs to none.

    `owner` is the experiment's id, or what `owner_of_task` gives.
    """
    return f"experiment-{owner}" if owner > 0 else f"task-{-owner}"


def owner_of_task(number: int) -> int:
    """What stands for an experiment's id where a task has a job of its own; `number` counts from 1."""
    return -number


def owner_of_job(job: str) -> int | None:
    """The `owner` of a job's id; None for what is no such id."""
    kind, _, number = job.partition("-")
    if kind not in ("experiment", "task") or not number.isdecimal():
        return None
    return int(number) if kind == "experiment" else -int(number)


def is_token(text: str) -> bool:
    """Whether `text` may stand as one token of a subject, and so as a worker id."""
    return len(text) <= 64 and _TOKEN.fullmatch(text) is not None
