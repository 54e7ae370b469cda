"""The supervisor's children: started, watched and restarted."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from services.kit import host_processes, subprocesses
from services.local.fork_client import ForkClient, Forked, NotForked
from services.local.home import ProgramRequest

MIN_BACKOFF_S = 0.05
MAX_BACKOFF_S = 5.0
STABLE_AFTER_S = 10.0
STOP_TIMEOUT_S = 15.0
POLL_S = 0.05
"""Interval in seconds for checking whether a stopped program should run again."""


@dataclass(frozen=True)
class Program:
    """One process of the cluster."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path


class Child:
    """Keeps one program running until it is told to stop."""

    def __init__(
        self,
        program: Program,
        on_start: Callable[[str, int], None],
        request: Callable[[str], ProgramRequest],
        forks: ForkClient | None = None,
    ) -> None:
        """`forks` starts the program if it can."""
        self.program = program
        self._forks = forks
        self._on_start = on_start
        self._read_request = request
        self._process: asyncio.subprocess.Process | Forked | None = None
        self._stopping = False

    async def keep_running(self) -> None:
        """Keep the program running. Restarts are quick at first, and slower if it keeps failing."""
        pause = MIN_BACKOFF_S
        while not self._stopping:
            request = self._read_request(self.program.name)
            if request.stopped:
                await asyncio.sleep(POLL_S)
                continue
            # Before the start itself, whose failure must count as a short run.
            began = time.monotonic()
            try:
                await self._run_once(request)
            except (OSError, subprocess.SubprocessError) as error:
                # No space for its log, no free processes: this may pass, and other programs still run.
                log_line(f"{self.program.name} cannot be started: {error}")
            if time.monotonic() - began > STABLE_AFTER_S:
                pause = MIN_BACKOFF_S
            if not self._stopping:
                await asyncio.sleep(pause)
                pause = min(2 * pause, MAX_BACKOFF_S)

    async def _run_once(self, request: ProgramRequest) -> None:
        with self.program.log.open("ab") as output:
            process = await self._start(dict(self.program.environment) | request.settings, output)
        self._process = process
        self._on_start(self.program.name, process.pid)
        # A stop or a new request may have arrived during the start.
        if self._stopping or self._read_request(self.program.name) != request:
            await _end_process(process)
        await process.wait()

    async def _start(
        self, environment: dict[str, str], output: IO[bytes]
    ) -> asyncio.subprocess.Process | Forked:
        module = (
            self._forks.forkable_module(self.program.command, environment) if self._forks is not None else ""
        )
        if self._forks is not None and module:
            try:
                return await self._forks.start(module, environment, output)
            except NotForked as error:
                log_line(f"{self.program.name} is started without the fork server: {error}")
        return await subprocesses.start(
            *self.program.command,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            # A killed supervisor must not leave half a cluster behind; trials survive under their own shims.
            preexec_fn=host_processes.die_with_parent,
        )

    async def stop(self) -> None:
        """Ask the program to exit, and kill it if it does not.

        A program that is starting is stopped once it runs.
        """
        # First, so that `keep_running` does not start it again.
        self._stopping = True
        await self.end()

    async def end(self) -> None:
        """End the program if it runs, killing it if necessary. It restarts unless it is being stopped."""
        if self._process is not None and self._process.returncode is None:
            await _end_process(self._process)

    def reload(self) -> None:
        """Send SIGHUP to the program if it runs, so that it reads its files again."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGHUP)


async def _end_process(process: asyncio.subprocess.Process | Forked) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(STOP_TIMEOUT_S):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()


def log_line(text: str) -> None:
    """Print a line to the supervisor's output; on a full disk it is lost."""
    with contextlib.suppress(OSError):
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        print(f"{moment} {text}", file=sys.stderr, flush=True)


def is_alive(pid: int) -> bool:
    """Whether a process with this pid runs; a zombie does not."""
    return host_processes.started(pid) is not None or _accepts_signal(pid)


def is_supervisor(pid: int) -> bool:
    """Whether a process with this pid runs and is a supervisor: after a reboot it may be any process."""
    if not is_alive(pid):
        return False
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return True
    return b"services.local" in arguments


def _accepts_signal(pid: int) -> bool:
    # On Linux /proc has already told; a signal would also reach a zombie.
    if Path("/proc/self").exists():
        return False
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
