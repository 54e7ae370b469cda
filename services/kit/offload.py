"""Runs heavy work in separate processes, which start on demand, are limited, and are stopped soon after.

A parser written in C holds the interpreter lock while it works, so a thread would still block the event loop.
Data is passed in unnamed files whose descriptors the child receives, so a request of 100 MiB passes through
neither process's event loop.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import structlog

from det_contracts.problems import Problem, Refused, invalid
from services.kit.admission import Admission
from services.kit.cancellation import cancel_and_wait
from services.kit.job import Job
from services.kit.process_metrics import Reading

IDLE_S = 20.0
"""Seconds for which an idle process is kept for the next job."""
MEMORY_BYTES = 2 << 30
"""Address space of one process."""
HANG_TIMEOUT_S = 30
"""Time in seconds that a job may take beyond ten times its processor time limit, on a busy machine."""
log = structlog.get_logger()


class _Process:
    """One child process, and our end of the socket to it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self.line = ours
        with theirs:
            # `-P`: a file called like one of our modules, in whatever folder the service was started in, must
            # not be imported.
            command = [sys.executable, "-P", "-m", "services.kit.offload_child"]
            words = [str(theirs.fileno()), str(os.getpid()), str(MEMORY_BYTES)]
            # Must run in the loop's own thread: the child dies with the thread that started it.
            self.popen = subprocess.Popen(  # noqa: S603 - ourselves, with arguments of our own
                [*command, *words], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
            )

    async def run(self, job: Job, files: Sequence[int]) -> bytes:
        """Run a job and return its outcome, one letter; empty if the process died."""
        order = msgspec.json.encode(job)
        socket.send_fds(self.line, [order], list(files))
        return await asyncio.get_running_loop().sock_recv(self.line, 1)

    def end(self) -> int:
        """Kill the process and return its exit status."""
        self.line.close()
        self.popen.kill()
        return self.popen.wait()


class Offload:
    """A pool of processes for heavy work, one per concurrent job."""

    def __init__(self, *, at_once: int = 2, each: int = 1, waiting: int = 32, each_waiting: int = 4) -> None:
        """Limit concurrent jobs in total and per user. Others wait or are told to retry later."""
        self.admission = Admission(
            "pieces of heavy work", at_once=at_once, each=each, waiting=waiting, each_waiting=each_waiting
        )
        self._idle: list[_Process] = []
        self._ending: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self, who: str, job: Job, argument: Any, files: Sequence[int] = ()) -> Any:
        """Run a job and return its value.

        Raises `Refused` if the job refuses or exceeds its limits, and `Busy` if there is no place. If the
        caller stops waiting, the job continues and keeps its place until it is finished.
        """
        # The job may outlive its caller, who closes the originals.
        duplicates = [os.dup(file) for file in files]
        work = asyncio.ensure_future(self._run_admitted(who, job, argument, duplicates))
        self._tasks.add(work)
        work.add_done_callback(self._tasks.discard)
        # The caller may be gone, so retrieve the exception here.
        work.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(work)

    async def _run_admitted(self, who: str, job: Job, argument: Any, files: list[int]) -> Any:
        try:
            async with self.admission.hold(who):
                return await self._run_job(job, argument, files)
        finally:
            for file in files:
                os.close(file)

    async def _run_job(self, job: Job, argument: Any, files: Sequence[int]) -> Any:
        # Files in memory without a name: nothing is left behind if either process is killed.
        argument_file, value = (os.memfd_create(name) for name in ("argument", "value"))
        try:
            await asyncio.to_thread(_fill, argument_file, msgspec.json.encode(argument))
            outcome = await self._run_in_process(job, [argument_file, value, *files])
            return await asyncio.to_thread(_read, outcome, value)
        finally:
            os.close(argument_file)
            os.close(value)

    async def _run_in_process(self, job: Job, files: Sequence[int]) -> bytes:
        process = self._acquire_process()
        is_done, began = False, time.monotonic()
        try:
            # The child limits its own processor time; this only ends a job that hangs without working.
            async with asyncio.timeout(HANG_TIMEOUT_S + 10 * job.seconds):
                outcome = await process.run(job, files)
            is_done = bool(outcome)
        except (TimeoutError, OSError):
            outcome = b""
        finally:
            if is_done:
                self._return_process(process)
            else:
                status = process.end()
        if not is_done:
            log.warning("offload.ended", job=job.function, status=status, seconds=time.monotonic() - began)
            raise _failure(job, status)
        return outcome

    def _acquire_process(self) -> _Process:
        while self._idle:
            process = self._idle.pop()
            if process.popen.poll() is None:
                return process
            process.end()
        return _Process()

    def _return_process(self, process: _Process) -> None:
        self._idle.append(process)
        if self._ending is not None:
            self._ending.cancel()
        self._ending = asyncio.get_running_loop().call_later(IDLE_S, self._end_idle)

    def _end_idle(self) -> None:
        idle, self._idle = self._idle, []
        for process in idle:
            process.end()

    async def close(self) -> None:
        """Stop all jobs and processes."""
        if self._ending is not None:
            self._ending.cancel()
        await cancel_and_wait(*self._tasks)
        self._end_idle()

    def readings(self) -> Iterable[Reading]:
        """Prometheus readings."""
        return self.admission.readings()


def _fill(file: int, content: bytes) -> None:
    with open(file, "wb", closefd=False) as target:
        target.write(content)


def _read(outcome: bytes, file: int) -> Any:
    """Return the value of a job, or raise what it raised."""
    with open(file, "rb", closefd=False) as source:
        source.seek(0)
        content = source.read()
    match outcome:
        case b"b":
            return content
        case b"v":
            return msgspec.json.decode(content)
        case b"m":
            raise invalid(f"this needs more than {MEMORY_BYTES >> 20} MiB of memory; make it smaller")
    raise Refused(msgspec.json.decode(content, type=Problem))


def _failure(job: Job, status: int) -> Refused:
    if status == -signal.SIGXCPU:
        return invalid(f"this takes more than {job.seconds} s of processor time; make it smaller")
    return Refused(Problem("internal", f"the process that worked on this ended with status {status}"))
