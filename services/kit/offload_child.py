"""The child process of `services.kit.offload`: `python -m services.kit.offload_child LINE PARENT MEMORY`."""

from __future__ import annotations

import importlib
import os
import resource
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

import services.kit.import_trimming  # noqa: F401  # isort: split
from det_contracts.problems import Problem, Refused
from services.kit.host_processes import die_with_parent
from services.kit.job import Job

MAX_FILES = 8
NICENESS = 5
"""Niceness, so that small requests go first on a busy machine."""


def main(line: int, parent: int, memory: int) -> None:
    """Run jobs one after the other until the parent closes the socket."""
    die_with_parent(parent)
    for number in (signal.SIGINT, signal.SIGTERM):
        # A signal to all processes of a terminal stops the service, which then stops this process.
        signal.signal(number, signal.SIG_IGN)
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    # A core would hold what users sent, on the service's disk.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with socket.socket(fileno=line) as orders:
        while True:
            order, files, *_ = socket.recv_fds(orders, 1 << 16, MAX_FILES)
            if not order:
                return
            orders.send(_run_job(msgspec.json.decode(order, type=Job), files))


def _run_job(job: Job, files: Sequence[int]) -> bytes:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    # The kernel counts since the process began, and it has had other jobs before.
    used = int(usage.ru_utime + usage.ru_stime) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (used + job.seconds, resource.RLIM_INFINITY))
    try:
        outcome, content = _outcome(job, files)
        with open(files[1], "wb", closefd=False) as target:
            target.write(content)
        return outcome
    except MemoryError:
        return b"m"
    finally:
        for file in files:
            os.close(file)


def _outcome(job: Job, files: Sequence[int]) -> tuple[bytes, bytes]:
    module, _, name = job.function.partition(":")
    with open(files[0], "rb", closefd=False) as argument_file:
        argument_file.seek(0)
        argument = msgspec.json.decode(argument_file.read())
    try:
        value: Any = getattr(importlib.import_module(module), name)(argument, *files[2:])
    except Refused as refusal:
        return b"r", msgspec.json.encode(refusal.problem)
    except MemoryError:
        raise
    except Exception as error:
        problem = Problem("internal", f"{name} failed: {error!r}")
        return b"r", msgspec.json.encode(problem)
    return (b"b", value) if isinstance(value, bytes) else (b"v", msgspec.json.encode(value))


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
